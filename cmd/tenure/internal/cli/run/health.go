package run

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
)

const healthLong = `Send a request to the HTTP server that a node runs with --listen. Exit 0 if it
answers 200, else 1.

Use it for the health checks of containers whose image has no other HTTP client.`

// healthCommand queries an HTTP server's health.
type healthCommand struct {
	out     *console.Output
	url     string
	timeout flagvalue.Duration
}

// NewHealth returns the command "tenure health".
func NewHealth(out *console.Output) *cobra.Command {
	c := &healthCommand{out: out, timeout: flagvalue.Duration{Value: 2 * time.Second}}
	cmd := &cobra.Command{
		Use:     "health",
		Short:   "Check a node's HTTP server",
		Long:    healthLong,
		Example: "  tenure health\n  tenure health --url 'http://127.0.0.1:8080/leader?role=billing'",
		Args:    console.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&c.url, "url", "http://127.0.0.1:8080/healthz", "the `URL` of /healthz, /readyz or /leader")
	cmd.Flags().Var(&c.timeout, "timeout", "how long to wait for the answer")
	return cmd
}

// healthRecord is the printed result.
type healthRecord struct {
	URL    string `json:"url"`
	Status int    `json:"status"`
	Body   string `json:"body"`
}

// maxResponse limits how much of the response is read.
const maxResponse = 4096

func (c *healthCommand) run(ctx context.Context) error {
	address, err := url.Parse(c.url)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return console.Usage("--url is %q; it must be like http://127.0.0.1:8080/healthz", c.url)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout.Value)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, http.NoBody)
	if err != nil {
		return console.Usage("--url: %w", err)
	}
	// Use no proxy, and one connection for one request.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return console.NotAcquired("%w", err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols { // its body has no end, and no context ends the read
		return console.NotAcquired("%s answers %s", c.url, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return console.NotAcquired("%s: %w", c.url, err)
	}
	record := healthRecord{c.url, response.StatusCode, console.Flatten(string(body))}
	if err := c.out.Print(record, fmt.Sprintf("%s: %s", response.Status, record.Body)); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return console.NotAcquired("%s answers %s", c.url, response.Status)
	}
	return nil
}
