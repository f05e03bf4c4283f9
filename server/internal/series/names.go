package series

import (
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
)

// canonicalPrefix begins the names under which series are kept.
const canonicalPrefix = "tenure_"

// prefixes are those by which a metric may be called; the last is the one that
// the nodes are configured with.
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

// canonical is the name under which a metric is kept.
func (p prefixes) canonical(name string) string {
	for _, prefix := range p {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return canonicalPrefix + rest
		}
	}
	return name
}

// of are all names that a metric has, by the one under which it is kept.
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

// queriedName returns the name by which a query that wants all of some names means a
// metric, if it means it at all.
func (p prefixes) queriedName(matchers []*labels.Matcher, name string) (string, bool) {
	for _, candidate := range p.of(name) {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(candidate) }) {
			return candidate, true
		}
	}
	return "", false
}
