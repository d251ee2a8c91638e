package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// What a proxy does to the bytes that pass; "downstream" are the answers.
const (
	timeoutUp   = `{"name":"up","type":"timeout","stream":"upstream","attributes":{"timeout":0}}`
	timeoutDown = `{"name":"down","type":"timeout","stream":"downstream","attributes":{"timeout":0}}`
	resetDown   = `{"name":"reset","type":"reset_peer","stream":"downstream","attributes":{"timeout":0}}`
	latencyDown = `{"name":"slow","type":"latency","stream":"downstream","attributes":{"latency":200}}`
)

// proxy stands before one server, for one instance.
type proxy struct {
	server   *toxiproxy.Proxy
	replaced string // address of a server that misbehaves, in its place
	mu       sync.Mutex
}

func newProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &proxy{server: toxiproxy.NewProxy(api, upstream, "127.0.0.1:0", upstream)}
	if err := p.server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.server.Stop)
	return p
}

func (p *proxy) address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.replaced != "" {
		return p.replaced
	}
	return p.server.Listen
}

// poison applies toxics; without any, the proxy refuses connections.
func (p *proxy) poison(t *testing.T, toxics []string) (heal func()) {
	t.Helper()
	if toxics == nil {
		p.server.Stop()
		return func() {
			if err := p.server.Start(); err != nil {
				t.Error(err)
			}
		}
	}
	for _, toxic := range toxics {
		if _, err := p.server.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			t.Error(err)
		}
	}
	return func() { p.server.Toxics.ResetToxics(context.Background()) }
}

// misbehaviour answers a request itself, or leaves it to the store.
type misbehaviour func(w http.ResponseWriter, r *http.Request, store http.Handler)

// misbehave puts a server before the object store that does as told.
func (i *instance) misbehave(t *testing.T, how misbehaviour) (heal func()) {
	t.Helper()
	target, err := url.Parse("http://" + i.lab.state.Objects.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	// The request is signed for the host that it was sent to: it is passed on as it is.
	store := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { how(w, r, store) }))
	t.Cleanup(server.Close)
	i.objects.mu.Lock()
	i.objects.replaced = strings.TrimPrefix(server.URL, "http://")
	i.objects.mu.Unlock()
	return func() {
		i.objects.mu.Lock()
		defer i.objects.mu.Unlock()
		i.objects.replaced = ""
	}
}

func s3Error(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>as told</Message></Error>", code)
}

func slowDown(w http.ResponseWriter, r *http.Request, store http.Handler) {
	if rand.IntN(10) < 3 {
		s3Error(w, http.StatusServiceUnavailable, "SlowDown")
		return
	}
	store.ServeHTTP(w, r)
}

func isDelete(r *http.Request) bool {
	return r.Method == http.MethodDelete || r.Method == http.MethodPost && r.URL.Query().Has("delete")
}

func deny(w http.ResponseWriter, r *http.Request, store http.Handler) {
	if isDelete(r) {
		s3Error(w, http.StatusForbidden, "AccessDenied")
		return
	}
	store.ServeHTTP(w, r)
}

// keepOneKey answers a batch that names a key below prefix with an error for it.
func keepOneKey(prefix string) misbehaviour {
	return func(w http.ResponseWriter, r *http.Request, store http.Handler) {
		if !isDelete(r) || r.Method != http.MethodPost {
			store.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		start := bytes.Index(body, []byte("<Key>"+prefix))
		if start < 0 {
			r.Body = io.NopCloser(bytes.NewReader(body))
			store.ServeHTTP(w, r)
			return
		}
		key, _, _ := bytes.Cut(body[start+len("<Key>"):], []byte("</Key>"))
		w.Header().Set("Content-Type", "application/xml")
		fmt.Fprintf(w, "<DeleteResult><Error><Key>%s</Key><Code>AccessDenied</Code><Message>as told</Message></Error></DeleteResult>", key)
	}
}

// truncate breaks lists off in their middle.
func truncate(w http.ResponseWriter, r *http.Request, store http.Handler) {
	if r.Method != http.MethodGet || r.URL.Query().Get("list-type") == "" {
		store.ServeHTTP(w, r)
		return
	}
	recorded := httptest.NewRecorder()
	store.ServeHTTP(recorded, r)
	body := recorded.Body.Bytes()
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	_, _ = w.Write(body[:len(body)/2])
	panic(http.ErrAbortHandler) // the connection ends here
}
