package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/exactly-one/tenure/internal/httpguard"
)

const oidcTable = "dashboard.oidc."

var oidcKeys = []key{
	{path: oidcTable + "issuer", kind: text, evidence: userEvidence, check: issuer, note: "none: no single sign-on"},
	{path: oidcTable + "client_id", kind: text, evidence: userEvidence, note: "none"},
	{path: oidcTable + "client_secret_file", kind: text, evidence: userEvidence, note: "none: a public client"},
	{path: oidcTable + "scopes", kind: texts, evidence: userEvidence, note: "openid, email and profile"},
	{path: oidcTable + "groups_claim", kind: text, evidence: userEvidence, fallback: "groups"},
	{path: oidcTable + "operator_emails", kind: texts, evidence: userEvidence, check: emails, note: "none"},
	{path: oidcTable + "operator_groups", kind: texts, evidence: userEvidence, note: "none"},
	{path: oidcTable + "viewer_emails", kind: texts, evidence: userEvidence, check: emails, note: "none"},
	{path: oidcTable + "viewer_groups", kind: texts, evidence: userEvidence, note: "none"},
}

// SignOn is an OpenID Connect provider and the access of its users.
type SignOn struct {
	Issuer     string
	ClientID   string
	SecretFile string // the client's secret; empty for a public client

	Scopes      []string // in addition to openid, email and profile
	GroupsClaim string   // default groups

	// The access of users by verified e-mail address, or *@DOMAIN, and groups. An
	// operator can also be a viewer.
	OperatorEmails, OperatorGroups []string
	ViewerEmails, ViewerGroups     []string
}

// SignOn returns the OpenID Connect provider of the file, without the redirect address
// for browsers; false if there is none.
func (f *File) SignOn() (SignOn, bool) {
	if f == nil || !f.set(oidcTable+"issuer") {
		return SignOn{}, false
	}
	list := func(name string) []string { return f.texts(oidcTable + name) }
	return SignOn{
		Issuer: f.text(oidcTable + "issuer"), ClientID: f.text(oidcTable + "client_id"), SecretFile: f.text(oidcTable + "client_secret_file"),
		Scopes: list("scopes"), GroupsClaim: f.text(oidcTable + "groups_claim"),
		OperatorEmails: list("operator_emails"), OperatorGroups: list("operator_groups"),
		ViewerEmails: list("viewer_emails"), ViewerGroups: list("viewer_groups"),
	}, true
}

// checkSignOn checks the keys of OpenID Connect against each other. A table of nothing
// but defaults, as "tenure config show" prints it, is no provider.
func (r *reader) checkSignOn() {
	table := strings.TrimSuffix(oidcTable, ".")
	at, has := r.file.tables[table]
	if !has || !slices.ContainsFunc(oidcKeys, func(k key) bool { return r.file.set(k.path) && r.file.lookup(k.path).value != k.fallback }) {
		return
	}
	for _, name := range []string{"issuer", "client_id"} {
		if !r.file.set(oidcTable + name) {
			r.fault(at, "%s needs %s", table, name)
		}
	}
	lists := []string{"operator_emails", "operator_groups", "viewer_emails", "viewer_groups"}
	if !slices.ContainsFunc(lists, func(name string) bool { return len(r.file.texts(oidcTable+name)) > 0 }) {
		r.fault(at, "%s needs one of %s: no user could log in", table, strings.Join(lists, ", "))
	}
}

func issuer(value any) error {
	text, _ := value.(string)
	return CheckIssuer(text)
}

func emails(value any) error {
	items, _ := value.([]string)
	for _, item := range items {
		if err := CheckEmail(item); err != nil {
			return err
		}
	}
	return nil
}

// CheckIssuer checks the address of a provider.
func CheckIssuer(text string) error {
	issuer, err := url.Parse(text)
	switch {
	case err != nil || issuer.Host == "" || issuer.RawQuery != "" || issuer.Fragment != "" || issuer.User != nil:
		return fmt.Errorf("it must be a URL like https://id.example.com")
	case issuer.Scheme == "https", issuer.Scheme == "http" && httpguard.IsLoopbackName(issuer.Host):
		return nil
	default:
		return fmt.Errorf("it must begin with https://, unless it is on this machine")
	}
}

// CheckEmail checks an e-mail address, or *@DOMAIN for all of a domain.
func CheckEmail(text string) error {
	name, domain, ok := strings.Cut(text, "@")
	if !ok || name == "" || domain == "" || strings.ContainsAny(domain, "@* ") || strings.Contains(name, "*") && name != "*" {
		return fmt.Errorf("%q is not an e-mail address or *@DOMAIN", text)
	}
	return nil
}
