package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"runbook/internal/fault"
	"runbook/internal/kube"
	"runbook/internal/kubetest"
)

// TestRelease runs against a real API server with real Deployment and StatefulSet
// controllers; every subtest has a namespace of its own.
func TestRelease(t *testing.T) {
	cluster := kubetest.Start(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *lab)
	}{
		{"chart-cluster", stopAndStartChartCluster},
		{"chart-standalone", stopAndStartStandalone},
		{"operator", stopAndStartOperator},
		{"operator-undoes-scaling", operatorUndoesScaling},
		{"slow-pods", podsThatStayTerminating},
		{"scaled-back", somebodyScalesBack},
		{"unlabeled", deploymentWithoutLabels},
		{"autoscaler", autoscalerSleepsAtZero},
		{"forbidden", missingPermissions},
		{"expired", expiredCertificate},
		{"unreachable", unreachableServer},
		{"no-release", releaseThatIsNotThere},
		{"crash-loop", crashLoopFailsTheStart},
		{"never-ready", neverReadyFailsTheStart},
		{"config", configurationIsPatchedInPlace},
		{"env", environmentOfThePods},
		{"tunnel", tunnels},
		{"interrupted", interruptedStopKeepsItsRecord},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, &lab{T: t, cluster: cluster, namespace: "t-" + test.name})
		})
	}
	t.Run("paused", func(t *testing.T) { // alone: it stops the server for everybody
		serverThatDoesNotAnswer(t, &lab{T: t, cluster: cluster, namespace: "t-paused"})
	})
}

// lab is one subtest's namespace.
type lab struct {
	*testing.T
	cluster   *kubetest.Cluster
	namespace string
}

func (l *lab) run(args ...string) string { l.Helper(); return l.cluster.Run(l.T, l.namespace, args...) }

func (l *lab) client() *kube.Client { l.Helper(); return l.clientOf(l.cluster.Kubeconfig) }

func (l *lab) clientOf(kubeconfig string) *kube.Client {
	l.Helper()
	c, err := kube.Open(kube.Config{Kubeconfig: kubeconfig, Namespace: l.namespace})
	if err != nil {
		l.Fatal(err)
	}
	return c
}

// user is a client that may do only what is allowed.
func (l *lab) user(args ...string) *kube.Client {
	l.Helper()
	path := filepath.Join(l.TempDir(), "kubeconfig")
	l.run(append([]string{"user", l.namespace, "--out", path}, args...)...)
	return l.clientOf(path)
}

func (l *lab) look(c *kube.Client, r kube.Release) *kube.State {
	l.Helper()
	s, err := c.Look(l.Context(), r)
	if err != nil {
		l.Fatal(err)
	}
	return s
}

// fails demands an error with this code, within the time given, and returns it.
func (l *lab) fails(code string, within time.Duration, do func(context.Context) error) *fault.Error {
	l.Helper()
	start := time.Now()
	err := do(l.Context())
	if took := time.Since(start); took > within {
		l.Errorf("it took %s, want at most %s", took.Round(time.Millisecond), within)
	}
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || e.Code != code {
		l.Fatalf("error is %v, want one with the code %s", err, code)
	}
	if len(e.Hints) == 0 {
		l.Errorf("%v says nothing about what to do", err)
	}
	return e
}

func (l *lab) contains(what, text string) {
	l.Helper()
	if !strings.Contains(text, what) {
		l.Errorf("want %q in:\n%s", what, text)
	}
}

var (
	patience = kube.Wait{Timeout: 60 * time.Second}
	release  = kube.Release{Name: "my-release"}
)

// stopAndStart is the whole way: running is seen as running, stopped as stopped,
// and afterwards everything is as it was.
func stopAndStart(l *lab, r kube.Release, want []kube.Replicas) {
	l.Helper()
	c := l.client()
	before := l.run("status")
	s := l.look(c, r)
	lines := strings.Join(s.StillRunning(), "\n")
	for _, w := range want {
		if w.Kind != "Milvus" {
			l.contains(fmt.Sprintf("%s (", w.Name), lines)
		}
	}
	if strings.Contains(lines, "woodpecker") || strings.Contains(lines, "etcd") || strings.Contains(lines, "minio") {
		l.Errorf("what must stay up counts as milvus:\n%s", lines)
	}
	recorded, err := c.Stop(l.Context(), r, patience)
	if err != nil {
		l.Fatal(err)
	}
	if diff := cmp.Diff(want, recorded); diff != "" {
		l.Errorf("what ran before differs (-want +got):\n%s", diff)
	}
	s = l.look(c, r)
	if still := s.StillRunning(); len(still) > 0 {
		l.Errorf("after the stop there is still: %v", still)
	}
	if down := s.NotUp(); len(down) > 0 || len(s.Support) != 3 {
		l.Errorf("support is %v, not up: %v", s.Support, down)
	}
	planned, err := s.Planned(nil)
	if err != nil {
		l.Fatal(err)
	}
	if err := c.Restore(l.Context(), s, planned); err != nil {
		l.Fatal(err)
	}
	if err := c.WaitRunning(l.Context(), r, kube.Rollout{Planned: planned, Steady: time.Second}, patience); err != nil {
		l.Fatal(err)
	}
	if err := c.Forget(l.Context(), r); err != nil {
		l.Fatal(err)
	}
	if diff := cmp.Diff(before, l.run("status")); diff != "" {
		l.Errorf("the cluster differs after stop and start (-before +after):\n%s", diff)
	}
	for _, w := range l.look(c, r).Workloads {
		if w.Recorded != "" {
			l.Errorf("%s still has the record %q", w, w.Recorded)
		}
	}
}

func stopAndStartChartCluster(_ *testing.T, l *lab) {
	l.run("install", "--replicas", "querynode=3")
	var want []kube.Replicas
	for _, w := range []struct {
		component string
		count     int32
	}{{"datanode", 1}, {"mixcoord", 1}, {"proxy", 2}, {"querynode", 3}, {"streamingnode", 2}} {
		want = append(want, kube.Replicas{Kind: "Deployment", Name: "my-release-milvus-" + w.component, Count: w.count})
	}
	stopAndStart(l, release, want)
}

func stopAndStartStandalone(_ *testing.T, l *lab) {
	l.run("install", "--layout", "chart-standalone")
	stopAndStart(l, release, []kube.Replicas{{Kind: "Deployment", Name: "my-release-milvus-standalone", Count: 1}})
}

func stopAndStartOperator(_ *testing.T, l *lab) {
	l.run("install", "--layout", "operator", "--release", "op")
	var want []kube.Replicas
	for _, w := range []struct {
		component string
		count     int32
	}{{"dataNode", 1}, {"mixCoord", 1}, {"proxy", 2}, {"queryNode", 2}, {"streamingNode", 2}} {
		want = append(want, kube.Replicas{Kind: "Milvus", Name: w.component, Count: w.count})
	}
	stopAndStart(l, kube.Release{Name: "op"}, want)
}

// Scaling the Deployments is no stop where an operator runs, even at the moment
// when no pod is left.
func operatorUndoesScaling(_ *testing.T, l *lab) {
	l.run("install", "--layout", "operator", "--release", "op")
	l.run("scale", "op-milvus-proxy", "0")
	s := l.look(l.client(), kube.Release{Name: "op"})
	l.contains("milvus resource op asks for dataNode 1, mixCoord 1, proxy 2, queryNode 2, streamingNode 2: the operator starts them again",
		strings.Join(s.StillRunning(), "\n"))
}

// A Deployment says it is at 0 while its pods still flush.
func podsThatStayTerminating(_ *testing.T, l *lab) {
	l.run("install")
	l.run("knob", "--component", "streamingnode", "--terminate", "25s")
	c := l.client()
	e := l.fails("kube.not-stopped", 15*time.Second, func(ctx context.Context) error {
		_, err := c.Stop(ctx, release, kube.Wait{Timeout: 8 * time.Second})
		return err
	})
	l.contains("(streamingnode): terminating since", e.Msg)
	if strings.Contains(e.Msg, "mixcoord") && strings.Contains(e.Msg, "wants 1") {
		l.Errorf("what was scaled down counts as wanted: %s", e.Msg)
	}
	if _, err := c.Stop(l.Context(), release, patience); err != nil {
		l.Errorf("a second, patient stop: %v", err)
	}
}

func somebodyScalesBack(_ *testing.T, l *lab) {
	l.run("install", "--autoscale", "querynode")
	l.run("knob", "--pod", "my-release-milvus-querynode", "--scale-back", "2")
	c := l.client()
	e := l.fails("kube.scaled-back", 20*time.Second, func(ctx context.Context) error {
		_, err := c.Stop(ctx, release, patience)
		return err
	})
	l.contains("my-release-milvus-querynode (querynode) was scaled to 0 and wants 2 replicas again", e.Msg)
	l.contains("suspend autoscaler my-release-milvus-querynode", strings.Join(e.Hints, "\n"))
}

func deploymentWithoutLabels(_ *testing.T, l *lab) {
	l.run("install", "--unlabeled", "side-node")
	c := l.client()
	l.contains("deployment side-node (milvus): it mounts the release's ConfigMap wants 1 replicas", strings.Join(l.look(c, release).StillRunning(), "\n"))
	if _, err := c.Stop(l.Context(), release, patience); err != nil {
		l.Fatal(err)
	}
	l.contains("deployment   side-node                        0/0", l.run("status"))
}

func autoscalerSleepsAtZero(_ *testing.T, l *lab) {
	l.run("install", "--autoscale", "proxy")
	c := l.client()
	if _, err := c.Stop(l.Context(), release, patience); err != nil {
		l.Fatal(err)
	}
	s := l.look(c, release)
	if diff := cmp.Diff([]kube.Autoscaler{{Name: "my-release-milvus-proxy", Target: "my-release-milvus-proxy", Min: 2}}, s.Autoscalers); diff != "" {
		l.Errorf("autoscalers differ (-want +got):\n%s", diff)
	}
}

func missingPermissions(_ *testing.T, l *lab) {
	l.run("install")
	reader := l.user("--allow", "apps/deployments,statefulsets:list", "--allow", "/pods:list", "--allow", "milvus.io/milvuses:get")
	s := l.look(reader, release)
	if diff := cmp.Diff([]string{"autoscalers: not allowed to list them"}, s.Unchecked); diff != "" {
		l.Errorf("what was not checked differs (-want +got):\n%s", diff)
	}
	e := l.fails("kube.forbidden", 10*time.Second, func(ctx context.Context) error {
		_, err := reader.Stop(ctx, release, patience)
		return err
	})
	l.contains("not allowed to patch deployments my-release-milvus-", e.Msg)
	l.contains(`apiGroups ["apps"], resources ["deployments"], verbs ["patch"]`, strings.Join(e.Hints, "\n"))
	blind := &lab{T: l.T, cluster: l.cluster, namespace: l.namespace}
	path := filepath.Join(l.TempDir(), "blind")
	blind.run("user", "blind", "--out", path, "--allow", "apps/deployments,statefulsets:list")
	e = l.fails("kube.forbidden", 10*time.Second, func(ctx context.Context) error {
		_, err := l.clientOf(path).Look(ctx, release)
		return err
	})
	if e.Kind != fault.Refused {
		l.Errorf("a missing permission is %v, want a refusal", e.Kind)
	}
}

func expiredCertificate(_ *testing.T, l *lab) {
	l.run("install", "--wait=false")
	c := l.user("--expired")
	e := l.fails("kube.unauthorized", 10*time.Second, func(ctx context.Context) error {
		_, err := c.Look(ctx, release)
		return err
	})
	l.contains("the client certificate in the kubeconfig expired on 20", e.Msg)
}

func unreachableServer(_ *testing.T, l *lab) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	c := l.clientOf(kubeconfigFor(l, "https://"+address))
	e := l.fails("kube.unreachable", 15*time.Second, func(ctx context.Context) error {
		_, err := c.Look(ctx, release)
		return err
	})
	l.contains("connection refused", e.Error())
}

// The server accepts connections and never answers.
func serverThatDoesNotAnswer(_ *testing.T, l *lab) {
	c := l.client()
	l.run("api", "pause")
	defer l.run("api", "resume")
	l.fails("kube.unreachable", 15*time.Second, func(ctx context.Context) error {
		_, err := c.Look(ctx, release)
		return err
	})
}

func releaseThatIsNotThere(_ *testing.T, l *lab) {
	l.run("install", "--wait=false")
	e := l.fails("kube.no-release", 10*time.Second, func(ctx context.Context) error {
		_, err := l.client().Look(ctx, kube.Release{Name: "my-relaese"})
		return err
	})
	l.contains("this namespace holds my-release", strings.Join(e.Hints, "\n"))
}

// Between two crashes the pods are ready: a probe alone would be content.
func crashLoopFailsTheStart(_ *testing.T, l *lab) {
	l.run("install")
	c := l.client()
	if _, err := c.Stop(l.Context(), release, patience); err != nil {
		l.Fatal(err)
	}
	l.run("knob", "--component", "streamingnode", "--crash-loop")
	e := l.fails("kube.restarts", 40*time.Second, func(ctx context.Context) error { return start(ctx, c, patience) })
	l.contains("(streamingnode) has restarted once since the start", e.Msg)
}

func neverReadyFailsTheStart(_ *testing.T, l *lab) {
	l.run("install")
	c := l.client()
	if _, err := c.Stop(l.Context(), release, patience); err != nil {
		l.Fatal(err)
	}
	l.run("knob", "--component", "proxy", "--never-ready")
	e := l.fails("kube.not-ready", 20*time.Second, func(ctx context.Context) error {
		return start(ctx, c, kube.Wait{Timeout: 8 * time.Second})
	})
	l.contains("proxy 0/2 ready", e.Msg)
	if strings.Contains(e.Msg, "woodpecker") {
		l.Errorf("woodpecker counts: %s", e.Msg)
	}
}

func start(ctx context.Context, c *kube.Client, wait kube.Wait) error {
	s, err := c.Look(ctx, release)
	if err != nil {
		return err
	}
	planned, err := s.Planned(nil)
	if err != nil {
		return err
	}
	if err := c.Restore(ctx, s, planned); err != nil {
		return err
	}
	return c.WaitRunning(ctx, release, kube.Rollout{Planned: planned, Steady: 2 * time.Second}, wait)
}

func configurationIsPatchedInPlace(_ *testing.T, l *lab) {
	l.run("install", "--wait=false")
	c := l.client()
	s := l.look(c, release)
	config, err := c.MilvusConfig(l.Context(), s)
	if err != nil {
		l.Fatal(err)
	}
	names := []string{}
	for _, f := range config.Files {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"default.yaml", "user.yaml"}) || config.Helm != "my-release" || config.ConfigMap != "my-release-milvus" {
		l.Fatalf("files %v of %s, rendered by %q", names, config.ConfigMap, config.Helm)
	}
	before := l.run("status", "--config", "my-release-milvus")
	interferences := 0
	err = c.UpdateConfig(l.Context(), s, func(m *kube.MilvusConfig) (string, string, error) {
		if interferences++; interferences == 1 {
			// Somebody else changes the ConfigMap between the read and the write.
			other := m.Files[1].Text + "# changed by somebody else\n"
			return "default.yaml", m.Files[0].Text + "# mine\n", c.UpdateConfig(l.Context(), s, func(*kube.MilvusConfig) (string, string, error) {
				return "user.yaml", other, nil
			})
		}
		return "default.yaml", m.Files[0].Text + "# mine\n", nil
	})
	if err != nil {
		l.Fatal(err)
	}
	if diff := cmp.Diff(before+"# mine\n", l.run("status", "--config", "my-release-milvus")); diff != "" {
		l.Errorf("default.yaml differs (-want +got):\n%s", diff)
	}
	l.contains("# changed by somebody else", l.run("status", "--config", "my-release-milvus", "--key", "user.yaml"))
	if interferences != 2 {
		l.Errorf("it was decided %d times, want once more after the conflict", interferences)
	}
}

func environmentOfThePods(_ *testing.T, l *lab) {
	l.run("install", "--layout", "operator", "--release", "minio", "--access-key", "AK", "--secret-key", "SK")
	c := l.client()
	vars, notes, err := c.MilvusEnv(l.Context(), l.look(c, kube.Release{Name: "minio"}))
	if err != nil || len(notes) > 0 {
		l.Fatal(err, notes)
	}
	got := map[string]string{}
	for _, v := range vars {
		got[v.Name] = fmt.Sprintf("%s %v %s", v.Value, v.Secret, v.From)
	}
	if got["MINIO_SECRET_ACCESS_KEY"] != "SK true secret minio-minio/secretkey" {
		l.Errorf("the secret key is %q", got["MINIO_SECRET_ACCESS_KEY"])
	}
	l.contains("tcp://10.96.", got["MINIO_ETCD_PORT"])
	reader := l.user("--allow", "apps/deployments,statefulsets:list", "--allow", "/pods:list", "--allow", "milvus.io/milvuses:get")
	_, notes, err = reader.MilvusEnv(l.Context(), l.look(reader, kube.Release{Name: "minio"}))
	if err != nil {
		l.Fatal(err)
	}
	l.contains("MINIO_SECRET_ACCESS_KEY: not allowed to get secrets minio-minio", strings.Join(notes, "\n"))
	l.contains("service links in the pods' environment: not allowed to list services", strings.Join(notes, "\n"))
}

// A stop that dies after it scaled down keeps what ran before: the next one finds it.
func interruptedStopKeepsItsRecord(_ *testing.T, l *lab) {
	l.run("install")
	l.run("knob", "--component", "proxy", "--terminate", "3s")
	c := l.client()
	l.fails("kube.not-stopped", 5*time.Second, func(ctx context.Context) error {
		_, err := c.Stop(ctx, release, kube.Wait{Timeout: 500 * time.Millisecond})
		return err
	})
	recorded, err := c.Stop(l.Context(), release, patience)
	if err != nil {
		l.Fatal(err)
	}
	if i := slices.IndexFunc(recorded, func(r kube.Replicas) bool { return strings.HasSuffix(r.Name, "proxy") }); i < 0 || recorded[i].Count != 2 {
		l.Errorf("the second stop says that this ran before: %v", recorded)
	}
}
