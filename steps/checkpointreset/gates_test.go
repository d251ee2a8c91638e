package checkpointreset

import (
	"strings"
	"testing"

	"runbook/internal/fault"
)

func testEachGateRefusesAndNothingIsWritten(t *testing.T, w *world) {
	for _, tt := range []struct {
		name  string
		flags []string
		in    Inputs
		code  string
		names string // what the message must name
	}{
		{"a growing segment", []string{"--growing"}, Inputs{}, "positions.unflushed", ": growing"},
		{"a sealed segment", []string{"--sealed"}, Inputs{}, "positions.unflushed", ": sealed"},
		{"a segment that was being flushed", []string{"--flushing"}, Inputs{}, "positions.unflushed", ": flushing"},
		{"a broadcast that did not end", []string{"--broadcast-pending"}, Inputs{}, "positions.broadcast", ": pending"},
		{"a field that no release has", []string{"--checkpoint-field7"}, Inputs{}, "positions.newer-layout", "field 7"},
		{"recovery storage V2", []string{"--magic2"}, Inputs{}, "positions.newer-layout", "recovery_magic is 2"},
		{"a directory that no release has", []string{"--newer-directory"}, Inputs{}, "positions.newer-layout", "recovery-control"},
		{"a replicated channel", []string{"--replicating"}, Inputs{}, "positions.replicating", "other-"},
		{"metadata in tikv", []string{"--tikv"}, Inputs{}, "positions.metastore", "tikv"},
		{"no physical channel", []string{"--no-channels"}, Inputs{}, "positions.no-channels", "pchannel"},
		{"mq.type set by hand under another spelling", []string{"--mqtype-alias", "pulsar"}, Inputs{}, "positions.pin-alias", "config/mq.type"},
		{"a channel that does not exist", nil, Inputs{Pchannels: []string{"by-dev-rootcoord-dml_7"}}, "positions.unknown-pchannel", "dml_7"},
		{"a WAL that does not exist", nil, Inputs{TargetWal: "natsmq"}, "positions.target", "natsmq"},
		{"a corrupt collection", []string{"--corrupt", "collections"}, Inputs{}, "positions.unreadable", "collection-info/1/77"},
		{"a corrupt collection under its legacy key", []string{"--corrupt", "legacy-collections"}, Inputs{}, "positions.unreadable", "collection/77"},
		{"a corrupt segment", []string{"--corrupt", "segments"}, Inputs{}, "positions.unreadable", "s/77/77/77"},
		{"a corrupt channel checkpoint", []string{"--corrupt", "channel-checkpoints"}, Inputs{}, "positions.unreadable", "77v0"},
		{"a corrupt consume checkpoint", []string{"--corrupt", "consume-checkpoints"}, Inputs{}, "positions.unreadable", "dml_77"},
		{"a corrupt broadcast", []string{"--corrupt", "broadcasts"}, Inputs{}, "positions.unreadable", "broadcast-task/77"},
		{"an empty collection", []string{"--empty-value", "collections"}, Inputs{}, "positions.unreadable", "the value is empty"},
		{"an empty segment", []string{"--empty-value", "segments"}, Inputs{}, "positions.unreadable", "the value is empty"},
		{"an empty channel checkpoint", []string{"--empty-value", "channel-checkpoints"}, Inputs{}, "positions.unreadable", "the value is empty"},
		{"an empty consume checkpoint", []string{"--empty-value", "consume-checkpoints"}, Inputs{}, "positions.unreadable", "the value is empty"},
		{"keys with a part too many or too few", []string{"--odd-keys"}, Inputs{}, "positions.unreadable", "5 keys"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := w.seed(t, tt.flags...)
			if tt.in.TargetWal == "" {
				tt.in.TargetWal = "woodpecker"
			}
			env, _ := s.wet(t)
			before := s.revision(t)
			_, previewed := preview(t.Context(), env, tt.in)
			_, ran := run(t.Context(), env, tt.in)
			if after := s.revision(t); after != before {
				t.Errorf("something was written: revision %d, then %d", before, after)
			}
			kind := fault.Refused
			if tt.code == "positions.target" {
				kind = fault.Usage
			}
			for _, err := range []error{previewed, ran} {
				wantFault(t, err, tt.code, kind)
				if !strings.Contains(err.Error(), tt.names) {
					t.Errorf("%q does not name %q", err, tt.names)
				}
			}
			if images, _ := env.Journal.Past().Images(); len(images) != 0 {
				t.Error("a before-image was left")
			}
		})
	}
}

func testEverythingInTheWayIsNamedAtOnce(t *testing.T, w *world) {
	s := w.seed(t, "--growing", "--broadcast-pending", "--odd-keys")
	env, _ := s.dry()
	_, err := preview(t.Context(), env, Inputs{TargetWal: "woodpecker"})
	for _, part := range []string{"broadcasts are not finished", "segments were not flushed", "keys cannot be read"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in: %v", part, err)
		}
	}
}

func testAnotherRootIsNotThisMilvus(t *testing.T, w *world) {
	s := w.seed(t)
	s.instance.Settings.Etcd.RootPath = "by-de"
	env, _ := s.dry()
	_, err := preview(t.Context(), env, Inputs{TargetWal: "woodpecker"})
	wantFault(t, err, "positions.no-instance", fault.Refused)
	wantFault(t, checkReset(t.Context(), env, Inputs{TargetWal: "woodpecker"}), "positions.no-instance", fault.Refused)
}

func testAGateThatTheOperatorOpensIsNamedAllTheSame(t *testing.T, w *world) {
	for name, tt := range map[string]struct {
		flags []string
		in    Inputs
		warns string
	}{
		"unflushed": {[]string{"--growing", "--sealed", "--flushing"}, Inputs{AllowGrowing: true}, "3 segments were not flushed"},
		"unreadable": {
			[]string{"--odd-keys", "--corrupt", "collections,segments,channel-checkpoints,consume-checkpoints", "--empty-value", "broadcasts"},
			Inputs{LeaveUnreadable: true}, "10 keys cannot be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := w.seed(t, tt.flags...)
			tt.in.TargetWal = "woodpecker"
			env, r := s.wet(t)
			if _, err := run(t.Context(), env, tt.in); err != nil {
				t.Fatal(err)
			}
			if !r.heard(tt.warns) {
				t.Errorf("nothing of %q in %q", tt.warns, r.said)
			}
			s.judge(t, "woodpecker")
			if err := checkReset(t.Context(), env, tt.in); err != nil {
				t.Error(err)
			}
		})
	}
}

func testThePinIsSetWhereThereIsOne(t *testing.T, w *world) {
	for _, tt := range []struct{ pin, before, after string }{
		{"none", "", ""},
		{"default", "default", "woodpecker"},
		{"woodpecker", "woodpecker", "woodpecker"},
		{"kafka", "kafka", "woodpecker"},
	} {
		t.Run(tt.pin, func(t *testing.T) {
			s := w.seed(t, "--mqtype", tt.pin)
			out, env := s.reset(t, Inputs{TargetWal: "woodpecker"})
			if out.Pin != (Pin{Before: tt.before, After: tt.after}) {
				t.Errorf("%+v", out.Pin)
			}
			s.judge(t, "woodpecker")
			undo(t, s, env)
			s.judge(t, "")
		})
	}
}
