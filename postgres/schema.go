package postgres

import (
	"context"
	"embed"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/doorbell"
	"github.com/exactly-one/tenure/internal/schema"
)

//go:embed migrations/*.sql migrations/parts.tsv
var migrations embed.FS

// core are the tables of elections and of the cluster.
var core = &schema.Feature{Name: schema.Core, Steps: schema.Steps(migrations, "migrations"), Parts: schema.Parts(migrations, "migrations")}

func init() {
	schema.Provide(func(backend any) *schema.Schema {
		if b := backend.(*Backend); b != nil {
			return b.installation.Schema
		}
		return nil
	})
}

// upper is the backend for packages on top of this one.
type upper struct{ b *Backend }

func (u upper) Migrate(ctx context.Context, features ...*schema.Feature) error {
	return u.b.installation.MigrateFeatures(ctx, features...)
}

func (u upper) CheckCore(ctx context.Context) error {
	return u.b.reader.Ask(ctx, "look at the schema", func(ctx context.Context, conn *pgx.Conn) error {
		_, err := u.b.installation.UsableVersions(ctx, conn)
		return err
	})
}

func (u upper) CheckParts(ctx context.Context, versions schema.Versions, f *schema.Feature) error {
	return u.b.reader.Ask(ctx, "check the tables of "+f.Name, func(ctx context.Context, conn *pgx.Conn) error {
		return u.b.installation.Schema.CheckParts(ctx, conn, versions, f)
	})
}

func (u upper) Listen(ctx context.Context, topic string, wake func()) error {
	return u.b.connect.Listen(ctx, wake, u.b.names.Channel(topic))
}

func (u upper) Attend(ctx context.Context, topic string, bell *doorbell.Bell) error {
	channel := u.b.names.Channel(topic)
	return u.b.connect.OnListening(ctx, func(conn *pgx.Conn) error {
		line, err := doorbell.On(ctx, conn, channel)
		if err != nil {
			return err
		}
		return bell.Attend(ctx, line)
	}, channel)
}
