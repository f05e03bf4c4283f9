package config

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/exactly-one/tenure/internal/pgdial"
)

// secrecy is the secret part of a value.
type secrecy int

const (
	open       secrecy = iota
	whole              // nothing of it
	connection         // a connection string: the passwords in it
	webhook            // a URL whose path or query is a secret: only its host
	arguments          // a command: all but the program
)

// mask replaces a secret.
const mask = "********"

// shown formats a value in the syntax of the file, for people to read. A secret from the
// environment is shown as the name of its variable.
func shown(k *key, value any, template string) string {
	text, ok := value.(string)
	switch {
	case k.secret == arguments:
		return literal(maskArguments(value))
	case !ok || k.secret == open:
		return strings.ReplaceAll(literal(value), "${", "$${") // it no longer refers to a variable
	case template != "":
		return quoted(maskTemplate(k, template))
	default:
		return quoted(maskText(k.secret, text))
	}
}

// maskArguments shows the program of a command alone. Of a text for the shell it
// shows nothing: any word of it can be a secret.
func maskArguments(value any) any {
	words, ok := value.([]string)
	if !ok || len(words) == 0 {
		return mask
	}
	shown := []string{strings.ReplaceAll(words[0], "${", "$${")}
	for range words[1:] {
		shown = append(shown, mask)
	}
	return shown
}

// maskText hides the secret part of a text.
func maskText(how secrecy, text string) string {
	switch how {
	case connection:
		return maskConnection(text)
	case webhook:
		// An @ behind the host may end an unescaped password: the host is a part of it.
		if parsed, err := url.Parse(text); err == nil && parsed.Host != "" && !strings.Contains(parsed.RequestURI()+"#"+parsed.EscapedFragment(), "@") {
			return parsed.Scheme + "://" + parsed.Host + "/" + mask
		}
	}
	return mask
}

// reference matches a reference to a variable, and the escape, which is none and has no
// name.
var reference = regexp.MustCompile(`\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)

// maskTemplate shows the variable of a secret, or the harmless parts of a connection
// string; never the default of a variable.
func maskTemplate(k *key, template string) string {
	var names []string
	for _, match := range reference.FindAllStringSubmatch(template, -1) {
		if match[1] != "" {
			names = append(names, "${"+match[1]+"}")
		}
	}
	without := reference.ReplaceAllStringFunc(template, func(found string) string {
		if match := reference.FindStringSubmatch(found); match[1] != "" {
			return "${" + match[1] + "}"
		}
		return found // the escape
	})
	switch {
	case len(names) == 1 && without == names[0]:
		return without
	case k.secret == connection:
		return maskConnection(without)
	default:
		return mask
	}
}

// The secret parameters of connection strings: in a list of key=value pairs, where a
// value may be quoted and its spaces escaped, and in a URL.
var (
	secretPair      = regexp.MustCompile(`(?i)([a-z_]*(?:password|secret|token|passphrase)\s*=\s*)('(?:[^'\\]|\\.)*'?|(?:\\.|[^\s\\])*)`)
	secretParameter = regexp.MustCompile(`(?i)([a-z_]*(?:password|secret|token|passphrase)=)[^&]*`)
	pairs           = regexp.MustCompile(`^\s*[a-z_]+\s*=`)
	pair            = regexp.MustCompile(`([A-Za-z_]+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:\\.|[^\s\\'])*)`)
)

// maskConnection hides the passwords of a connection string. It hides an unknown form as
// a whole.
func maskConnection(dsn string) string {
	scheme, rest, isURL := strings.Cut(dsn, "://")
	switch {
	case pairs.MatchString(dsn):
		return maskPairs(dsn)
	case strings.HasPrefix(dsn, "sqlite:"):
		return secretParameter.ReplaceAllString(dsn, "${1}"+mask)
	case !isURL:
		return mask
	}
	before, query, hasQuery := strings.Cut(rest, "?")
	if strings.Contains(query, "@") { // the ? may be part of an unescaped password
		return scheme + "://" + mask
	}
	if at := strings.LastIndexByte(before, '@'); at >= 0 {
		if user, _, hasPassword := strings.Cut(before[:at], ":"); hasPassword {
			before = user + ":" + mask + before[at:]
		}
	}
	if !hasQuery {
		return scheme + "://" + before
	}
	masked := secretParameter.ReplaceAllString(query, "${1}"+mask)
	if masked != query && hasRemains(masked, strings.HasPrefix(scheme, "postgres")) {
		return scheme + "://" + mask
	}
	return scheme + "://" + before + "?" + masked
}

// hasRemains reports whether a query has what may be the rest of an unescaped password.
func hasRemains(query string, ofPostgres bool) bool {
	for part := range strings.SplitSeq(query, "&") {
		name, _, isPair := strings.Cut(part, "=")
		if !isPair || ofPostgres && !isSecret(name) && !pgdial.Knows(name) {
			return true
		}
	}
	return false
}

// maskPairs hides the passwords of a list of pairs, and the whole list if it has what may be
// the rest of an unescaped password.
func maskPairs(dsn string) string {
	masked := secretPair.ReplaceAllString(dsn, "${1}"+mask)
	rest := pair.ReplaceAllStringFunc(masked, func(found string) string {
		if name := pair.FindStringSubmatch(found)[1]; isSecret(name) || pgdial.Knows(name) {
			return ""
		}
		return found
	})
	if strings.TrimSpace(rest) != "" {
		return mask
	}
	return masked
}

func isSecret(name string) bool { return secretPair.MatchString(name + "=") }
