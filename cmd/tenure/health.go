package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

const healthLong = `Ask a node's HTTP server, the one of --listen, and exit 0 if it answers 200, else 1.

It is for the health checks of containers whose image has no other HTTP client.`

// healthCommand asks an HTTP server how it fares.
type healthCommand struct {
	out     *output
	url     string
	timeout duration
}

func newHealth(out *output) *cobra.Command {
	c := &healthCommand{out: out, timeout: duration{value: 2 * time.Second}}
	cmd := &cobra.Command{
		Use:     "health",
		Short:   "Ask a node's HTTP server whether it is healthy",
		Long:    healthLong,
		Example: "  tenure health\n  tenure health --url 'http://127.0.0.1:8080/leader?role=billing'",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&c.url, "url", "http://127.0.0.1:8080/healthz", "what to ask: /healthz, /readyz or /leader")
	cmd.Flags().Var(&c.timeout, "timeout", "how long to wait for the answer")
	return cmd
}

// healthRecord is the answer as it is printed.
type healthRecord struct {
	URL    string `json:"url"`
	Status int    `json:"status"`
	Body   string `json:"body"`
}

// longestAnswer bounds what is read of an answer.
const longestAnswer = 4096

func (c *healthCommand) run(ctx context.Context) error {
	address, err := url.Parse(c.url)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return usage("--url is %q; it must be like http://127.0.0.1:8080/healthz", c.url)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout.value)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, http.NoBody)
	if err != nil {
		return usage("--url: %w", err)
	}
	// Not through a proxy, and one connection for one question.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return notAcquired("%w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	if err != nil {
		return notAcquired("%s: %w", c.url, err)
	}
	record := healthRecord{c.url, response.StatusCode, flatten(string(body))}
	if err := c.out.print(record, fmt.Sprintf("%s: %s", response.Status, record.Body)); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return notAcquired("%s answers %s", c.url, response.Status)
	}
	return nil
}
