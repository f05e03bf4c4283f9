package config

import (
	"fmt"

	"github.com/exactly-one/tenure/internal/program/passwordhash"
)

// userList is the list of tables of users.
const userList = "dashboard.users"

// The values of access.
const (
	viewerAccess   = "viewer"
	operatorAccess = "operator"
)

// User is a user who logs in to the dashboard with a password.
type User struct {
	Name         string
	Operator     bool // otherwise a viewer
	PasswordHash string
}

// Users are the users of the file.
func (f *File) Users() []User {
	if f == nil {
		return nil
	}
	var all []User
	for i := range f.elements[userList] {
		table := fmt.Sprintf("%s[%d]", userList, i)
		all = append(all, User{
			Name: f.text(table + ".name"), Operator: f.text(table+".access") == operatorAccess, PasswordHash: f.text(table + ".password_hash"),
		})
	}
	return all
}

// checkUsers checks users against each other.
func (r *reader) checkUsers() {
	for i := range r.file.elements[userList] {
		r.required(fmt.Sprintf("%s[%d]", userList, i), "name", "password_hash")
	}
	r.unique(userList)
}

// hashed checks the hash of a password.
func hashed(value any) error {
	text, _ := value.(string)
	_, err := passwordhash.Parse(text)
	return err
}
