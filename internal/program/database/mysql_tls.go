package database

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/go-sql-driver/mysql"
)

// setTLS configures the encryption of a connection, by the parameters
//
//	tls   true: with a certificate valid for the host
//	      skip-verify: with any certificate
//	      preferred: with any certificate, and in the clear if the server has
//	      none; the default for a host
//	      false: in the clear; the default for a socket
//	ca    a file with the certificates of the authorities to trust, in PEM
//	      form, instead of the system's; implies tls=true
//	cert, key  files with the client's certificate and key, in PEM form
func setTLS(config *mysql.Config, parameters map[string]string) error {
	mode := parameters["tls"]
	if mode == "" {
		switch {
		case parameters["ca"] != "":
			mode = "true"
		case config.Net == "unix":
			mode = "false"
		default:
			mode = "preferred"
		}
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	switch mode {
	case "true":
	case "skip-verify":
		settings.InsecureSkipVerify = true
	case "preferred":
		settings.InsecureSkipVerify, config.AllowFallbackToPlaintext = true, true
	case "false":
		settings = nil
	default:
		return invalid("the parameter tls must be true, skip-verify, preferred or false")
	}
	config.TLS = settings

	if file := parameters["ca"]; file != "" {
		if mode != "true" {
			return invalid("the parameter ca says what to verify, and tls=%s verifies nothing", mode)
		}
		if err := setAuthorities(settings, file); err != nil {
			return err
		}
	}
	return setCertificate(settings, parameters["cert"], parameters["key"])
}

// setCertificate sets the certificate of the client; settings is nil without TLS.
func setCertificate(settings *tls.Config, cert, key string) error {
	switch {
	case cert == "" && key == "":
		return nil
	case cert == "" || key == "":
		return invalid("the parameters cert and key belong together: give both")
	case settings == nil:
		return invalid("the parameters cert and key are of use with TLS only")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return invalid("the client's certificate: %w", err)
	}
	settings.Certificates = []tls.Certificate{pair}
	return nil
}

// setAuthorities trusts the certificates of a file, and no others.
func setAuthorities(settings *tls.Config, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return invalid("the certificates of the authorities: %w", err)
	}
	settings.RootCAs = x509.NewCertPool()
	if !settings.RootCAs.AppendCertsFromPEM(content) {
		return invalid("%s holds no certificate in PEM form", file)
	}
	return nil
}
