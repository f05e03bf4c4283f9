package pgdial

import (
	"errors"
	"strings"
	"unicode"
)

// errEscape refuses a string if the driver would cut it in the middle of a password: it
// would look up one part as a host and print the other as a database.
var errEscape = errors.New("the connection string has @, / or # where none belongs: escape the password " +
	"(in a URL @ is written %40, / %2F, # %23, ? %3F and % %25)")

// refuseRemains refuses a URL if an @, a slash or a # in it may belong to a password. The
// driver ends user and password at the first @, unless a slash comes before it.
func refuseRemains(dsn string) error {
	if !isURL(dsn) {
		return nil
	}
	_, rest, _ := strings.Cut(dsn, "://")
	at := strings.IndexAny(rest, "@/")
	if at >= 0 && rest[at] == '@' {
		rest = rest[at+1:]
	}
	path, _, _ := strings.Cut(rest, "?")
	_, database, _ := strings.Cut(path, "/")
	if strings.Contains(rest, "@") || strings.Contains(path, "#") || strings.Contains(database, "/") {
		return errEscape
	}
	return nil
}

// refuseNames refuses impossible names of hosts and databases: a whole connection string
// in PGDATABASE, for example, has a password.
func (r *reading) refuseNames() error {
	for _, host := range targets(r.config) {
		if !host.isSocket() && strings.ContainsFunc(host.host, notOfHost) {
			return errEscape
		}
	}
	for _, name := range []string{r.config.Database, r.config.User} {
		if strings.Contains(name, "://") || strings.Contains(name, "password=") {
			return errors.New("the name of the database or of the user is a connection string: give it as such, or name only the database")
		}
	}
	return nil
}

// notOfHost reports whether a character is in no name and no address of a host.
func notOfHost(r rune) bool {
	return strings.ContainsRune(`@/\#?&=;'"()<>{}|^~$!*+`+"`", r) || unicode.IsSpace(r) || unicode.IsControl(r)
}
