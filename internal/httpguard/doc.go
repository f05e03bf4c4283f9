// Package httpguard has what every HTTP handler of this project asks before it
// answers: by which name it is called, where a request comes from, and how often
// wrong credentials came from there.
package httpguard
