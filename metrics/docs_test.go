package metrics_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/postgres"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// autoscaling are the files with queries for autoscalers.
var autoscaling = []string{
	"docs/howto/deploy.md", "docs/reference/metrics.md",
	"deploy/kubernetes/autoscale-keda-postgresql.yaml",
	"deploy/kubernetes/autoscale-keda-prometheus.yaml",
	"deploy/kubernetes/autoscale-hpa.yaml",
}

// Queries use metrics that exist.
func TestQueriesUseExistingMetrics(t *testing.T) {
	exist := map[string]bool{}
	for _, definition := range metrics.Definitions() {
		exist["tenure_"+definition.Name] = true
	}
	found := 0
	for _, path := range autoscaling {
		for _, name := range regexp.MustCompile(`\btenure_(?:leader|cluster|node|postgres|processor|cron|work)_[a-z_]*[a-z]\b`).FindAllString(read(t, path), -1) {
			found++
			if !exist[name] {
				t.Errorf("%s asks for %s, which does not exist", path, name)
			}
		}
	}
	if found < 50 {
		t.Errorf("%d metrics: the test looks in the wrong place", found)
	}
}

// The documented SQL for autoscalers works for a user with the documented
// privileges, and its result can be read as KEDA reads it: as one
// floating-point number.
func TestAutoscalerQueriesWork(t *testing.T) {
	server := pgtest.Shared(t)
	dsn := server.Database(t)
	backend, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	node := open(t, backend, "a")
	defer closeNode(t, node)
	admin := pgtest.Conn(t, dsn)

	page := read(t, "docs/howto/deploy.md")
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) != 2 || !strings.HasPrefix(blocks[1][1], "CREATE ROLE figures") {
		t.Fatalf("%d blocks of SQL: the test looks in the wrong place", len(blocks))
	}
	queryFloat(t, admin, blocks[0][1])

	pgtest.Exec(t, admin, blocks[1][1])
	t.Cleanup(func() {
		if _, err := admin.Exec(context.Background(), "RESET ROLE; DROP OWNED BY figures; DROP ROLE figures"); err != nil {
			t.Error(err)
		}
	})
	pgtest.Exec(t, admin, "SET ROLE figures")
	queries := regexp.MustCompile("(?m)(?:query: |`)(SELECT [^`\n]*)").FindAllStringSubmatch(
		read(t, "deploy/kubernetes/autoscale-keda-postgresql.yaml")+page, -1)
	if len(queries) != 3 {
		t.Fatalf("%d queries: the test looks in the wrong place", len(queries))
	}
	for _, query := range queries {
		queryFloat(t, admin, query[1])
	}
	_, view, _ := strings.Cut(page, "### Read the view")
	columns := regexp.MustCompile("(?m)^\\| ((?:`[a-z_]+`(?:, )?)+) \\|").FindAllStringSubmatch(view, -1)
	asked := 0
	for _, row := range columns {
		for _, column := range strings.Split(row[1], ", ") {
			queryFloat(t, admin, "SELECT "+strings.Trim(column, "`")+" FROM public.tenure_autoscaling")
			asked++
		}
	}
	if asked != 10 {
		t.Errorf("%d columns are documented", asked)
	}
	if active := queryFloat(t, admin, "SELECT active_nodes FROM public.tenure_autoscaling"); active != 1 {
		t.Errorf("%v active nodes", active)
	}
}

func queryFloat(t *testing.T, conn *pgx.Conn, query string) (answer float64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), query).Scan(&answer); err != nil {
		t.Errorf("%s: %v", query, err)
	}
	return answer
}
