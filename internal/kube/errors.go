package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"runbook/internal/fault"
)

// explain turns what the API server, the connection or the credentials answered
// into an error with a way out. Not found and conflict stay recognisable by
// apierrors. The caller's own cancellation is passed on as it is.
func (c *Client) explain(err error, verb string, r resource, name string) error {
	object := strings.TrimSuffix(r.plural+" "+name, " ")
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case apierrors.IsForbidden(err):
		return fault.Refuse("kube.forbidden", "not allowed to %s %s", verb, object).At(c.String()).Because(err).
			Hint("allow it in a Role: apiGroups [%q], resources [%q], verbs [%q]", apiGroup(r), r.plural, verb).
			Hint("see what is allowed: kubectl%s auth can-i --list -n %s", c.contextFlag(), c.namespace)
	case apierrors.IsUnauthorized(err):
		return c.unauthorized(err)
	case apierrors.IsNotFound(err):
		return fault.Refuse("kube.not-found", "%s not found", object).At(c.String()).Because(err)
	case apierrors.IsConflict(err):
		return fault.Fail("kube.conflict", "%s changed while it was being changed", object).At(c.String()).Because(err).
			Hint("run again: what somebody else changed is read anew")
	case isAPIStatus(err):
		return fault.Fail("kube.api-error", "the API server did not %s %s", verb, object).At(c.String()).Because(err)
	}
	return c.unreachable(err)
}

func isAPIStatus(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// apiGroup is "apps" of /apis/apps/v1, and "" of the core group.
func apiGroup(r resource) string {
	parts := strings.Split(r.base, "/")
	if len(parts) > 2 && parts[1] == "apis" {
		return parts[2]
	}
	return ""
}

func (c *Client) contextFlag() string {
	if c.context == "" {
		return ""
	}
	return " --context " + c.context
}

// unauthorized names the usual cause when it can be seen from here.
func (c *Client) unauthorized(err error) error {
	refusal := fault.Refuse("kube.unauthorized", "the API server does not accept the credentials").At(c.String()).Because(err)
	if ended, ok := clientCertificateEnd(c.config); ok && time.Now().After(ended) {
		refusal.Msg = fmt.Sprintf("the client certificate in the kubeconfig expired on %s", ended.Format(time.DateOnly))
	}
	return refusal.Hint("renew them (log in to the cluster again), then check: kubectl%s auth whoami", c.contextFlag())
}

func clientCertificateEnd(config *rest.Config) (time.Time, bool) {
	data := config.CertData
	if len(data) == 0 && config.CertFile != "" {
		data, _ = os.ReadFile(config.CertFile)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return time.Time{}, false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, false
	}
	return certificate.NotAfter, true
}

func (c *Client) unreachable(err error) error {
	cause := err
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		cause = wrapped.Err // without the whole URL
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fault.Refuse("kube.untrusted", "the certificate of the API server is not trusted").At(c.config.Host).Because(cause).
			Hint("take certificate-authority-data of this cluster anew: the kubeconfig belongs to another one, or the cluster's CA was renewed")
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, context.DeadlineExceeded) {
		return fault.Refuse("kube.unreachable", "no answer from the API server within %s", requestTimeout).At(c.config.Host).Because(cause).
			Hint("check the network, VPN and kubeconfig: kubectl%s get --raw /readyz", c.contextFlag())
	}
	// Neither network nor API: the credentials could not be had (exec plugin, token file).
	return fault.Refuse("kube.credentials", "no request could be made").At(c.config.Host).Because(cause).
		Hint("check that kubectl works from here: kubectl%s get --raw /readyz", c.contextFlag())
}

func unusableConfig(c Config, err error) error {
	where := c.Kubeconfig
	if where == "" {
		where = "kubeconfig"
	}
	refusal := fault.Refuse("kube.config", "no usable Kubernetes configuration").At(where).Because(err)
	if c.Context != "" {
		return refusal.Hint("check instance.kubernetes.context: kubectl config get-contexts")
	}
	return refusal.Hint("set instance.kubernetes.kubeconfig or KUBECONFIG; inside a pod nothing needs to be set")
}
