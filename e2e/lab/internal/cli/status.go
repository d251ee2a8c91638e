package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"runbook/e2e/lab/internal/control"
	"runbook/e2e/lab/internal/survey"
)

func (a *app) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "what runs and what each tier holds", Args: usageArgs(cobra.NoArgs),
	}
	output := addOutput(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		lab, err := a.running()
		if err != nil {
			return err
		}
		components, err := control.NewClient(lab.Control).Components(cmd.Context())
		if err != nil {
			return err
		}
		seen, err := survey.Look(cmd.Context(), lab)
		if err != nil {
			return err
		}
		full := struct {
			Components control.Components `json:"components"`
			*survey.Survey
		}{components, seen}
		return show(cmd, *output, full, func(w io.Writer) {
			for m, up := range components.Etcd {
				fmt.Fprintf(w, "etcd %d\t%s\t%s\n", m+1, lab.Etcd.Endpoints[m], upDown(up))
			}
			fmt.Fprintf(w, "objects\t%s\t%s\n", lab.Objects.Endpoint, upDown(components.Objects))
			for i, state := range components.Nodes {
				fmt.Fprintf(w, "node %d\t%s\t%s\n", i+1, lab.Nodes[i].Endpoint, state)
			}
			printMetadata(w, seen)
			printObjects(w, seen)
			printDisks(w, seen)
		})
	}
	return cmd
}

func upDown(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

func printMetadata(w io.Writer, s *survey.Survey) {
	if s.EtcdError != "" {
		fmt.Fprintf(w, "\nMETADATA not readable: %s\n", s.EtcdError)
		return
	}
	if len(s.Metadata) == 0 {
		fmt.Fprintf(w, "\nMETADATA none, etcd revision %d\n", s.EtcdRevision)
	}
	for _, m := range s.Metadata {
		counter := "missing"
		if m.Counter != nil {
			counter = fmt.Sprint(*m.Counter)
		}
		segments := 0
		for _, l := range append(m.Logs[:len(m.Logs):len(m.Logs)], m.Parked...) {
			segments += l.Segments
		}
		fmt.Fprintf(w, "\nMETADATA %s: %d logs, %d parked, %d segments, counter %s, instance keys %d of 4 (%s), %d other keys\n",
			m.Prefix, len(m.Logs), len(m.Parked), segments, counter, len(m.InstanceKeys), strings.Join(m.InstanceKeys, " "), m.OtherKeys)
		if len(m.Logs)+len(m.Parked) > 0 {
			fmt.Fprintln(w, "LOG\tNAME\tSEGMENTS\tWITHOUT QUORUM\tSTATE")
		}
		for _, l := range m.Logs {
			fmt.Fprintf(w, "%d\t%s\t%d\t%d\tlive\n", l.ID, l.Name, l.Segments, l.NoQuorum)
		}
		for _, l := range m.Parked {
			fmt.Fprintf(w, "%d\t%s\t%d\t%d\tparked\n", l.ID, l.Name, l.Segments, l.NoQuorum)
		}
	}
}

func printObjects(w io.Writer, s *survey.Survey) {
	if s.ObjectsError != "" {
		fmt.Fprintf(w, "\nOBJECTS not readable: %s\n", s.ObjectsError)
		return
	}
	if len(s.Objects) == 0 {
		fmt.Fprintf(w, "\nOBJECTS none\n")
	}
	for _, r := range s.Objects {
		count, bytes := total(r.Logs)
		fmt.Fprintf(w, "\nOBJECTS s3://%s/%s: %d of %d logs, %d bytes; %d other, %d bytes\n",
			r.Bucket, r.Root, count, len(r.Logs), bytes, r.Other, r.OtherBytes)
		if len(r.Logs) > 0 {
			fmt.Fprintln(w, "LOG\tOBJECTS\tBYTES")
		}
		for _, l := range r.Logs {
			fmt.Fprintf(w, "%d\t%d\t%d\n", l.ID, l.Count, l.Bytes)
		}
		const sample = 10
		for i, key := range r.OtherKeys {
			if i == sample {
				fmt.Fprintf(w, "other\tand %d more\n", len(r.OtherKeys)-sample)
				break
			}
			fmt.Fprintf(w, "other\t%s\n", key)
		}
	}
}

func printDisks(w io.Writer, s *survey.Survey) {
	ids, files := diskTable(s)
	fmt.Fprintln(w)
	for _, d := range s.Disks {
		if d.Error != "" {
			fmt.Fprintf(w, "DISK %s not readable: %s\n", diskName(d), d.Error)
		}
	}
	fmt.Fprint(w, "DISKS")
	for _, d := range s.Disks {
		fmt.Fprintf(w, "\t%s", strings.ToUpper(diskName(d)))
	}
	fmt.Fprint(w, "\nmarkers")
	for _, d := range s.Disks {
		fmt.Fprintf(w, "\t%d", d.Markers)
	}
	fmt.Fprintln(w)
	for _, row := range ids {
		fmt.Fprintf(w, "%s/%d", row.owner, row.id)
		for i := range s.Disks {
			amount := files[row][i]
			fmt.Fprintf(w, "\t%d files %d B", amount.Count, amount.Bytes)
		}
		fmt.Fprintln(w)
	}
}

type diskRow struct {
	owner string
	id    int64
}

// diskTable turns the disks' contents into rows of logs and columns of disks.
func diskTable(s *survey.Survey) ([]diskRow, map[diskRow][]survey.LogAmount) {
	var rows []diskRow
	cells := map[diskRow][]survey.LogAmount{}
	for i, d := range s.Disks {
		for _, o := range d.Owners {
			for _, l := range o.Logs {
				row := diskRow{o.Owner, l.ID}
				if cells[row] == nil {
					cells[row] = make([]survey.LogAmount, len(s.Disks))
					rows = append(rows, row)
				}
				cells[row][i] = l
			}
		}
	}
	return rows, cells
}

func diskName(d survey.Disk) string {
	if d.N == 0 {
		return "local"
	}
	return fmt.Sprintf("node %d", d.N)
}

func total(logs []survey.LogAmount) (count int, bytes int64) {
	for _, l := range logs {
		count += l.Count
		bytes += l.Bytes
	}
	return count, bytes
}
