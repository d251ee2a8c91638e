package instance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"runbook/internal/fault"
)

// handshakeTimeout bounds the look at one endpoint's certificate.
const handshakeTimeout = 2 * time.Second

func (t *TLS) config() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	config := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if t.CACert != "" {
		pem, err := os.ReadFile(t.CACert)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no PEM certificate", t.CACert)
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// handshake looks at the certificate of the first endpoint that answers. etcd's
// client keeps to itself why a handshake fails and reports that time ran out;
// whether an endpoint answers at all is left to it.
func handshake(ctx context.Context, endpoints []string, config *tls.Config, dial func(ctx context.Context, network, address string) (net.Conn, error)) error {
	for _, endpoint := range endpoints {
		address, secure := strings.CutPrefix(endpoint, "https://")
		if !secure && config == nil {
			continue
		}
		answers, err := shakeHands(ctx, address, config, dial)
		if err != nil {
			return fault.Refuse("etcd.tls", "etcd's certificate is not accepted").At(endpoint).Because(err).
				Hint("set instance.etcd.tls.caCert to the CA that signed it, and serverName if it is for another name").
				Hint("write the endpoint with http:// or without scheme, and no tls section, if this etcd has no TLS")
		}
		if answers {
			return nil
		}
	}
	return nil
}

func shakeHands(ctx context.Context, address string, config *tls.Config, dial func(ctx context.Context, network, address string) (net.Conn, error)) (answers bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	raw, err := dial(ctx, "tcp", address)
	if err != nil {
		return false, nil
	}
	defer raw.Close()
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config = config.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	err = tls.Client(raw, config).HandshakeContext(ctx)
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return true, err
	}
	if _, noTLS := errors.AsType[tls.RecordHeaderError](err); noTLS {
		return true, err
	}
	return err == nil, nil
}
