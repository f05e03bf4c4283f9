package roster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/nearest"
)

// shortestPrefix is the least part of an id to name a node with: fewer characters could
// be a mistyped name.
const shortestPrefix = 4

// AmbiguousError reports a text with several matching nodes.
type AmbiguousError struct {
	Text  string
	Nodes []tenure.Member
}

func (e *AmbiguousError) Error() string {
	const most = 5
	var ids []string
	for i, m := range e.Nodes {
		if i == most {
			ids = append(ids, fmt.Sprintf("and %d more", len(e.Nodes)-most))
			break
		}
		ids = append(ids, fmt.Sprintf("%s (%s, %s on %s)", m.ID, m.Name, m.Status, m.Host))
	}
	return fmt.Sprintf("%d nodes are called %q; name one by its id: %s", len(e.Nodes), e.Text, strings.Join(ids, ", "))
}

// Alive reports whether a node is not dead.
func Alive(m tenure.Member) bool { return m.Status != tenure.StatusDead }

// Dead reports whether a node is dead.
func Dead(m tenure.Member) bool { return m.Status == tenure.StatusDead }

// Find returns the node named by a text: its id, its name, or the beginning of its id, in
// this order. If the text names several, the nodes for which fits is true take
// precedence: a restarted node has the name of its dead predecessor. An error matches
// tenure.ErrUnknownNode, and suggests a node, or is an [*AmbiguousError].
func (r *Roster) Find(text string, fits func(tenure.Member) bool) (tenure.Member, error) {
	if id, err := uuid.Parse(text); err == nil {
		if m, ok := r.Member(id); ok {
			return m, nil
		}
		return tenure.Member{}, r.unknown(text)
	}
	named := r.where(func(m tenure.Member) bool { return m.Name == text })
	if len(named) == 0 && len(text) >= shortestPrefix {
		begin := strings.ToLower(text)
		named = r.where(func(m tenure.Member) bool { return strings.HasPrefix(m.ID.String(), begin) })
	}
	fitting := slices.DeleteFunc(slices.Clone(named), func(m tenure.Member) bool { return !fits(m) })
	switch {
	case len(fitting) == 1:
		return fitting[0], nil
	case len(named) == 1:
		return named[0], nil
	case len(named) == 0:
		return tenure.Member{}, r.unknown(text)
	case len(fitting) > 1:
		named = fitting
	}
	return tenure.Member{}, &AmbiguousError{text, named}
}

func (r *Roster) where(holds func(tenure.Member) bool) []tenure.Member {
	return slices.DeleteFunc(slices.Clone(r.Members), func(m tenure.Member) bool { return !holds(m) })
}

// unknown reports a name without a node, with the known names, or the probably meant one.
func (r *Roster) unknown(text string) error {
	if len(r.Members) == 0 {
		return fmt.Errorf("%w: %q; the registry is empty", tenure.ErrUnknownNode, text)
	}
	var texts []string
	for _, m := range r.Members {
		texts = append(texts, m.Name, m.ID.String())
	}
	if meant := nearest.Of(text, texts); meant != "" {
		return fmt.Errorf("%w: %q; did you mean %q?", tenure.ErrUnknownNode, text, meant)
	}
	if names := r.names(); names != "" {
		return fmt.Errorf("%w: %q; the living nodes are %s", tenure.ErrUnknownNode, text, names)
	}
	return fmt.Errorf("%w: %q; all nodes of the registry are dead", tenure.ErrUnknownNode, text)
}

// names lists the living nodes, the first ones of many.
func (r *Roster) names() string {
	const most = 5
	var names []string
	for _, m := range r.where(Alive) {
		if len(names) == most {
			names = append(names, "…")
			break
		}
		names = append(names, m.Name)
	}
	return strings.Join(names, ", ")
}

// ShortIDs returns the shortest distinct beginnings of the ids of all nodes, of at least
// eight characters.
func (r *Roster) ShortIDs() func(uuid.UUID) string {
	const shortest, longest = 8, 36
	for length := shortest; length < longest; length++ {
		seen := map[string]bool{}
		for _, m := range r.Members {
			seen[m.ID.String()[:length]] = true
		}
		if len(seen) == len(r.Members) {
			return func(id uuid.UUID) string { return id.String()[:length] }
		}
	}
	return uuid.UUID.String
}
