package database

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

const lookingUp = "TENURE_TEST_LOOKING_UP"

// lookUpMain is the child: it uses strings, records what names it looks up, and prints all
// that it says.
func lookUpMain() {
	var asked sync.Map
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() { // ends with the question
			question := make([]byte, 4096)
			n, _ := server.Read(question)
			asked.Store(strings.ToUpper(string(question[:n])), true)
			_ = server.Close()
		}()
		return client, nil
	}}
	for _, dsn := range strings.Split(os.Getenv(lookingUp), "\x1f") {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		target, err := Parse(dsn, nil)
		if err == nil && target.Leases() {
			db, openErr := target.Open(ctx)
			if err = openErr; err == nil {
				err = db.PingContext(ctx)
			}
		} else if err == nil {
			pool, openErr := target.Pool(ctx, "test")
			if err = openErr; err == nil {
				err = pool.Ping(ctx)
			}
		}
		if err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
		}
		if target != nil {
			os.Stdout.WriteString(target.String() + " " + target.Place() + "\n")
		}
		cancel()
	}
	asked.Range(func(question, _ any) bool { os.Stdout.WriteString("question " + question.(string) + "\n"); return true })
}

// No part of a password that is not escaped is looked up or said, whatever the database.
func TestNoPartOfAPasswordIsLookedUp(t *testing.T) {
	t.Parallel()
	const word = "QXZJ9QZXJ8XQJZ7ZQXJ6"
	random := rand.New(rand.NewPCG(4, 5))
	forms := []string{
		"postgres://app:PASS@db.invalid/app", "postgres://app:PASS@db.invalid/app?tenure_mode=lease", "host=db.invalid user=app password=PASS dbname=app",
		"mysql://app:PASS@db.invalid/app", "mariadb://app:PASS@db.invalid:3306/app?tls=false", "postgresql://app:PASS@db.invalid,db2.invalid/app",
	}
	var all []string
	for i := range 240 {
		special := `@/#?:%&=+ ,;`
		password := []string{"", "12/", "1?", "a@b/", "x@y?z="}[random.IntN(5)]
		for at := 0; at < len(word); at += 5 {
			password += word[at:at+5] + string(special[random.IntN(len(special))])
		}
		all = append(all, strings.Replace(forms[i%len(forms)], "PASS", password, 1))
	}
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), lookingUp+"="+strings.Join(all, "\x1f"))
	output, err := child.CombinedOutput()
	said := string(output)
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if !strings.Contains(said, "escape the password") || !strings.Contains(said, "question ") {
		t.Errorf("no string was refused, or no name looked up: %.2000s", said)
	}
	for at := range len(word) - 3 {
		part := word[at : at+4]
		if i := strings.Index(said, part); i >= 0 {
			t.Fatalf("%s is said: %q", part, said[max(0, i-200):min(len(said), i+100)])
		}
	}
}
