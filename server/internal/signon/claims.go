package signon

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// claims are the provider's statements about a user.
type claims struct {
	subject string
	email   string // verified, in lower case; otherwise empty
	groups  []string
}

// read adds the claims of an ID token or of the provider's description of the user.
func (c *claims) read(from interface{ Claims(v any) error }, groupsClaim string) error {
	var all map[string]json.RawMessage
	if err := from.Claims(&all); err != nil {
		return fmt.Errorf("read the claims: %w", err)
	}
	if c.email == "" && isTrue(all["email_verified"]) {
		_ = json.Unmarshal(all["email"], &c.email) // an address of another type is none
		c.email = strings.ToLower(c.email)
	}
	if len(c.groups) == 0 {
		c.groups = textsOf(all[groupsClaim])
	}
	return nil
}

// isTrue reads true, which some providers send as a string.
func isTrue(raw json.RawMessage) bool { return string(raw) == "true" || string(raw) == `"true"` }

// textsOf reads a list of strings, or one string.
func textsOf(raw json.RawMessage) (texts []string) {
	if json.Unmarshal(raw, &texts) == nil {
		return texts
	}
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	return nil
}

// complete reports whether nothing needed for the access or the user's name is missing.
func (c *claims) complete(config Config) bool {
	needGroups := len(config.OperatorGroups)+len(config.ViewerGroups) > 0
	return c.email != "" && (!needGroups || len(c.groups) > 0)
}

// matches reports whether the user has one of the addresses, or is in one of the groups.
func (c *claims) matches(emails, groups []string) bool {
	_, domain, _ := strings.Cut(c.email, "@")
	return c.email != "" && slices.ContainsFunc(emails, func(email string) bool {
		email = strings.ToLower(email)
		return email == c.email || email == "*@"+domain
	}) || slices.ContainsFunc(c.groups, func(group string) bool { return slices.Contains(groups, group) })
}
