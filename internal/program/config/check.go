package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/program/nearest"
	"github.com/exactly-one/tenure/internal/program/notifier"
)

// between checks for a number or a duration between two, both included.
func between[T cmp.Ordered](least, most T) func(any) error {
	return func(value any) error {
		if number, ok := value.(T); ok && (number < least || number > most) {
			return fmt.Errorf("%s is out of range; it must be between %s and %s", written(number), written(least), written(most))
		}
		return nil
	}
}

// oneOf checks for one of a few texts.
func oneOf(choices ...string) func(any) error {
	return func(value any) error {
		text, ok := value.(string)
		for _, choice := range choices {
			if !ok || text == choice {
				return nil
			}
		}
		last := len(choices) - 1
		list := strings.Join(choices[:last], ", ") + " or " + choices[last]
		if meant := nearest.Of(text, choices); meant != "" {
			return fmt.Errorf("it is %q; it must be %s: did you mean %q?", text, list, meant)
		}
		return fmt.Errorf("it is %q; it must be %s", text, list)
	}
}

// address checks a text like host:port, where the host may be empty.
func address(value any) error {
	text, _ := value.(string)
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		if strings.Contains(text, "@") { // perhaps with a password
			return errors.New("it must be an address like 127.0.0.1:8080, without a user and a password")
		}
		return fmt.Errorf("%q is not an address like 127.0.0.1:8080", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("the port %q is not a number from 0 to 65535", port)
	}
	return nil
}

// labels checks texts like name=value.
func labels(value any) error {
	items, _ := value.([]string)
	seen := map[string]bool{}
	for _, item := range items {
		name, _, ok := strings.Cut(item, "=")
		switch {
		case !ok || name == "":
			return fmt.Errorf("%q is not a label like zone=eu", item)
		case seen[name]:
			return fmt.Errorf("the label %q is given twice", name)
		}
		seen[name] = true
	}
	return nil
}

// networks checks addresses and networks.
func networks(value any) error {
	items, _ := value.([]string)
	for _, item := range items {
		_, addressErr := netip.ParseAddr(item)
		_, networkErr := netip.ParsePrefix(item)
		if addressErr != nil && networkErr != nil {
			return fmt.Errorf("%q is neither an address nor a network, such as 10.0.0.7 or 10.0.0.0/8", item)
		}
	}
	return nil
}

// webAddress checks a URL. It does not repeat it, for it may hold a secret.
func webAddress(value any) error {
	text, _ := value.(string)
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return errors.New("it must be a URL that begins with https:// or http://")
	}
	if notifier.CutPassword(parsed) {
		return errors.New("it has an @ behind the host: escape the password (@ is written %40, / %2F and # %23)")
	}
	return nil
}

// CheckExternalURL checks the address of the dashboard: a link is this text and a path.
func CheckExternalURL(text string) error {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" ||
		parsed.RawQuery != "" || strings.ContainsAny(text, "?#") || parsed.User != nil {
		return errors.New("it must be a URL like https://tenure.example.com, without a user, a query and a fragment")
	}
	return nil
}

func externalURL(value any) error {
	text, _ := value.(string)
	return CheckExternalURL(text)
}

var metricName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// metricPrefix checks a prefix for names of metrics.
func metricPrefix(value any) error {
	if text, _ := value.(string); !metricName.MatchString(text) {
		return fmt.Errorf("%q cannot begin the name of a metric: use letters, digits and _, and do not begin with a digit", text)
	}
	return nil
}

// written formats a value in the syntax of the file.
func written(value any) string {
	switch value := value.(type) {
	case time.Duration:
		return WrittenDuration(value)
	default:
		return fmt.Sprint(value)
	}
}
