package program

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// issue writes a self-signed certificate and its key, and returns a pool that
// trusts it.
func issue(t *testing.T, cert, key string, serial int64) *x509.CertPool {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "weir.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return pool
}

// presented returns the serial number of the certificate that a server presents.
func presented(t *testing.T, address string) int64 {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func TestRenewedCertificateIsUsedWithoutARestart(t *testing.T) {
	home := t.TempDir()
	cert, key := filepath.Join(home, "cert.pem"), filepath.Join(home, "key.pem")
	pool := issue(t, cert, key, 1)
	p, base := serving(t, home, nil, "--tls-cert", cert, "--tls-key", key)
	address, ok := strings.CutPrefix(base, "https://")
	if !ok {
		t.Fatalf("weir is running at %s", base)
	}
	c := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	res, err := c.Get(base + "/health")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 || res.ProtoMajor != 2 {
		t.Errorf("status %d over %s", res.StatusCode, res.Proto)
	}
	if code, _, text := output(t, home, []string{"TLS_CERT=" + cert, "TLS_KEY=" + key}, "health", "--listen", address); code != 0 {
		t.Errorf("health: %s", text)
	}
	if _, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	if serial := presented(t, address); serial != 1 {
		t.Fatalf("certificate %d", serial)
	}
	// Half of a renewal: the key does not fit the certificate.
	other := filepath.Join(home, "other.pem")
	issue(t, cert, other, 2)
	for range 3 {
		if serial := presented(t, address); serial != 1 {
			t.Errorf("certificate %d during a renewal", serial)
		}
	}
	if n := strings.Count(p.stderr.String(), "cannot be used"); n != 1 {
		t.Errorf("%d lines about it, want 1", n)
	}
	if err := os.Rename(other, key); err != nil {
		t.Fatal(err)
	}
	if serial := presented(t, address); serial != 2 {
		t.Errorf("certificate %d after the renewal", serial)
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	if serial := presented(t, address); serial != 2 {
		t.Errorf("certificate %d while the file is missing", serial)
	}
	issue(t, cert, key, 3)
	if serial := presented(t, address); serial != 3 {
		t.Errorf("certificate %d after the second renewal", serial)
	}
	p.stop()
}
