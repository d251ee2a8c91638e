package cli

import (
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/e2e/lab/internal/access"
)

// etcdKey is one key as the etcd commands print it.
type etcdKey struct {
	Key   string `json:"key"`
	Value string `json:"value"` // text, or hex:... where it is not
	Mod   int64  `json:"modRevision"`
	Lease int64  `json:"lease"`
}

// etcdApp adds whose rights all the etcd commands use.
type etcdApp struct {
	*app
	as *string
}

func (a *app) etcdCommand() *cobra.Command {
	e := &etcdApp{app: a}
	cmd := &cobra.Command{Use: "etcd", Short: "look at keys and change them", Args: usageArgs(cobra.NoArgs), RunE: help}
	e.as = addAs(cmd.PersistentFlags())
	cmd.AddCommand(e.get(), e.put(), e.del(), e.revision(), e.alarm())
	return cmd
}

func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

func (e *etcdApp) withEtcd(cmd *cobra.Command, do func(*clientv3.Client) error) error {
	lab, err := e.running()
	if err != nil {
		return err
	}
	who, err := choose(*e.as, lab.Etcd.Root, lab.Etcd.Writer, lab.Etcd.Reader)
	if err != nil {
		return err
	}
	client, err := access.EtcdAs(cmd.Context(), lab, who)
	if err != nil {
		return err
	}
	defer client.Close()
	return do(client)
}

func (e *etcdApp) get() *cobra.Command {
	var prefix, keysOnly, valueOnly bool
	cmd := &cobra.Command{
		Use: "get KEY", Short: "print a key, or all below a prefix; exit 1 if there is none", Args: usageArgs(cobra.ExactArgs(1)),
	}
	cmd.Flags().BoolVar(&prefix, "prefix", false, "all keys that begin with KEY")
	cmd.Flags().BoolVar(&keysOnly, "keys-only", false, "leave the values out")
	cmd.Flags().BoolVar(&valueOnly, "value-only", false, "leave the keys out")
	output := addOutput(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return e.withEtcd(cmd, func(c *clientv3.Client) error {
			resp, err := c.Get(cmd.Context(), args[0], withPrefix(prefix)...)
			if err != nil {
				return err
			}
			var keys []etcdKey
			for _, kv := range resp.Kvs {
				keys = append(keys, etcdKey{string(kv.Key), printable(kv.Value), kv.ModRevision, kv.Lease})
			}
			if len(keys) == 0 {
				return fmt.Errorf("no key %s", args[0])
			}
			return show(cmd, *output, keys, func(w io.Writer) {
				for _, k := range keys {
					switch {
					case keysOnly:
						fmt.Fprintln(w, k.Key)
					case valueOnly:
						fmt.Fprintln(w, k.Value)
					default:
						fmt.Fprintf(w, "%s\t%s\n", k.Key, k.Value)
					}
				}
			})
		})
	}
	return cmd
}

func withPrefix(prefix bool) []clientv3.OpOption {
	if prefix {
		return []clientv3.OpOption{clientv3.WithPrefix()}
	}
	return nil
}

func printable(value []byte) string {
	control := slices.ContainsFunc([]rune(string(value)), func(r rune) bool { return r < ' ' || r == 0x7f })
	if control || !utf8.Valid(value) {
		return "hex:" + hex.EncodeToString(value)
	}
	return string(value)
}

func (e *etcdApp) put() *cobra.Command {
	var isHex bool
	cmd := &cobra.Command{
		Use: "put KEY VALUE", Short: "write a key", Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			value := args[1]
			if isHex {
				raw, err := hex.DecodeString(value)
				if err != nil {
					return usageError{err}
				}
				value = string(raw)
			}
			return e.withEtcd(cmd, func(c *clientv3.Client) error {
				_, err := c.Put(cmd.Context(), args[0], value)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&isHex, "hex", false, "VALUE is hexadecimal")
	return cmd
}

func (e *etcdApp) del() *cobra.Command {
	var prefix bool
	cmd := &cobra.Command{
		Use: "del KEY", Short: "delete a key, or all below a prefix", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withEtcd(cmd, func(c *clientv3.Client) error {
				resp, err := c.Delete(cmd.Context(), args[0], withPrefix(prefix)...)
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), resp.Deleted)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&prefix, "prefix", false, "all keys that begin with KEY")
	return cmd
}

func (e *etcdApp) revision() *cobra.Command {
	return &cobra.Command{
		Use: "revision", Short: "print etcd's revision", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withEtcd(cmd, func(c *clientv3.Client) error {
				resp, err := c.Get(cmd.Context(), "\x00", clientv3.WithCountOnly())
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), resp.Header.Revision)
				return nil
			})
		},
	}
}

func (e *etcdApp) alarm() *cobra.Command {
	return &cobra.Command{
		Use: "alarm nospace|clear|list", Short: "raise, clear or list alarms", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withEtcd(cmd, func(c *clientv3.Client) error {
				switch args[0] {
				case "nospace":
					return raiseNoSpace(cmd, c)
				case "clear":
					_, err := c.AlarmDisarm(cmd.Context(), &clientv3.AlarmMember{})
					return err
				case "list":
					resp, err := c.AlarmList(cmd.Context())
					if err != nil {
						return err
					}
					for _, alarm := range resp.Alarms {
						fmt.Fprintf(cmd.OutOrStdout(), "member %x: %s\n", alarm.MemberID, alarm.Alarm)
					}
					return nil
				default:
					return usagef("alarm %q: want nospace, clear or list", args[0])
				}
			})
		},
	}
}

// raiseNoSpace does what a member does when its database has grown to its
// quota; the ordinary client has no call for it.
func raiseNoSpace(cmd *cobra.Command, c *clientv3.Client) error {
	members, err := c.MemberList(cmd.Context())
	if err != nil {
		return err
	}
	_, err = etcdserverpb.NewMaintenanceClient(c.ActiveConnection()).Alarm(cmd.Context(), &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: members.Members[0].ID, Alarm: etcdserverpb.AlarmType_NOSPACE,
	})
	return err
}
