package series

import (
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
)

// canonicalPrefix begins the names of series in the store.
const canonicalPrefix = "tenure_"

// prefixes are the possible prefixes of a metric; the last is the configured one of the
// nodes.
type prefixes []string

func newPrefixes(configured string) prefixes {
	own := configured + "_"
	if configured == "" {
		own = canonicalPrefix
	}
	all := slices.DeleteFunc(prefixes{canonicalPrefix, "forge_"}, func(p string) bool { return p == own })
	return append(all, own)
}

// own is the name of a metric as the nodes have it.
func (p prefixes) own(name string) string {
	names := p.of(name)
	return names[len(names)-1]
}

// canonical is the name of a metric in the store.
func (p prefixes) canonical(name string) string {
	for _, prefix := range p {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return canonicalPrefix + rest
		}
	}
	return name
}

// of are all names of a metric, by its name in the store.
func (p prefixes) of(name string) []string {
	rest, ok := strings.CutPrefix(name, canonicalPrefix)
	if !ok {
		return []string{name}
	}
	names := make([]string, len(p))
	for i, prefix := range p {
		names[i] = prefix + rest
	}
	return names
}

// queriedName returns the metric's name that satisfies a query's matchers of names, if
// there is one.
func (p prefixes) queriedName(matchers []*labels.Matcher, name string) (string, bool) {
	for _, candidate := range p.of(name) {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(candidate) }) {
			return candidate, true
		}
	}
	return "", false
}
