package postgres

import (
	"context"

	"github.com/exactly-one/tenure"
)

// FeatureVersion is the version of a feature's tables.
type FeatureVersion struct {
	Feature string
	Version int // in the database; 0 if it has no tables
	Newest  int // of this program; 0 if it does not know the feature
	// OtherBuild is whether another build of the program made the tables, from other
	// migrations with the same numbers.
	OtherBuild bool
}

// Migrate creates the schema, or brings an older one up to date: the tables of elections
// and of the cluster, needed by every node, and the tables of the named features and
// their requirements. Unless [Config.ManualMigrations] is set, a node creates the former,
// and the first use of a feature creates the feature's tables. The name "all" means all
// features of this program: a feature is a package, such as cron for "schedules", and
// tenure migrate status lists them.
//
// If all tables are current, Migrate does nothing, so any user may call it then. Any
// number of processes may call it at the same time: one works, the others wait. If ctx
// ends, nothing is changed. An error matches:
//
//   - dberr.ErrSchema if the schema is newer and this package may not use it;
//   - dberr.ErrPrivilege if the user may not create it;
//   - dberr.ErrWrongMode if the installation elects by leases;
//   - dberr.ErrInstallationInUse if the schema was removed while nodes are still running;
//   - tenure.ErrInvalidConfig for an unknown name of a feature.
func (b *Backend) Migrate(ctx context.Context, features ...string) error {
	return b.installation.Migrate(ctx, features...)
}

// MigrateDown undoes migrations of a feature until it has the given version; 0 removes
// its tables. The feature "core" at version 0 means all tables of all features, and so
// does "all". No node may be running: an error about running nodes lists them and matches
// dberr.ErrInstallationInUse. An error matches tenure.ErrInvalidConfig if the feature has
// no such version, or if another feature needs it.
func (b *Backend) MigrateDown(ctx context.Context, feature string, version int) error {
	return b.installation.MigrateDown(ctx, feature, version)
}

// SchemaVersions reads the versions of all features: the core, then the features
// of this program, then others.
func (b *Backend) SchemaVersions(ctx context.Context) ([]FeatureVersion, error) {
	versions, err := b.installation.SchemaVersions(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]FeatureVersion, len(versions))
	for i, v := range versions {
		all[i] = FeatureVersion(v)
	}
	return all, nil
}

// SchemaVersion reads the version of the tables of elections and of the cluster;
// 0 if there are none.
func (b *Backend) SchemaVersion(ctx context.Context) (int, error) {
	return b.installation.SchemaVersion(ctx)
}

// MigrationSQL returns a script, for operators with their own tools to apply changes.
// Without names it creates the tables of elections and of the cluster, in a database
// without them. With names of features it creates the tables of these features and of
// their requirements, unless they exist, and with "core" or "all" both. The error for an
// unknown name of a feature matches tenure.ErrInvalidConfig.
func (b *Backend) MigrationSQL(features ...string) (string, error) {
	return b.installation.MigrationSQL(features...)
}

// MigrateRepair restores the schema of the migrations: missing or changed tables,
// columns, indexes, triggers, functions, rows and positions of sequences. It returns the
// statements it ran. With dryRun it undoes them again. Numbers of later terms are greater
// than all the database still has. No node may be running: an error about running nodes
// lists them and matches dberr.ErrInstallationInUse. An error matches dberr.ErrSchema if
// there are no tables, or if only an operator can mend them.
func (b *Backend) MigrateRepair(ctx context.Context, dryRun bool) (statements []string, err error) {
	return b.installation.MigrateRepair(ctx, dryRun)
}

// SetMode records how the installation elects: by "sessions", as this package does, or by
// "leases", as package lease does. No node may be running, neither with a session nor
// with a lease: an error about running nodes lists them and matches
// dberr.ErrInstallationInUse. ctx bounds it.
func (b *Backend) SetMode(ctx context.Context, mode string) error {
	return b.installation.SetMode(ctx, mode)
}

// Rekey makes the lock key of role the recorded one of its name, and returns the recorded
// keys before and after it, as N or A:B. The role must have no leader. The numbers of its
// terms continue. Nodes may run: a candidate with another key than the recorded one gets
// ErrKeyMismatch, whatever it read before.
//
// An error matches dberr.ErrHasLeader if a node leads the role or is about to, or if a
// session holds one of the two locks; dberr.ErrUnknownRole if no node has ever been a
// candidate for the role here; and tenure.ErrKeyMismatch if another role has the key.
func (b *Backend) Rekey(ctx context.Context, role tenure.Role) (before, after string, err error) {
	return b.installation.Rekey(ctx, role)
}

// NodeGrants returns the GRANT statements for the database user of nodes, if it does not
// own the schema.
func (b *Backend) NodeGrants(user string) string { return b.installation.NodeGrants(user) }

// ApplicationGrants returns the GRANT statements for the database user of an application.
// The application fences its transactions with [InTx] or [Fence] and runs no node. An
// open transaction of this user can hold up a failover, so the database users of the
// nodes become able to terminate it: name all of them.
func (b *Backend) ApplicationGrants(user string, nodes ...string) string {
	return b.installation.ApplicationGrants(user, nodes...)
}

// WorkGrants returns the GRANT statements for the database user of the pool of features,
// such as schedules and processors. They are for the tables of the named features, which
// must exist, and of their requirements. See [Backend.Migrate] for the names. An error
// matches tenure.ErrInvalidConfig.
func (b *Backend) WorkGrants(user string, features ...string) (string, error) {
	return b.installation.WorkGrants(user, features...)
}

// CompactionGrants returns the GRANT statements for the database user of the pool of
// package retention, on the tables of the named features, as [Backend.WorkGrants] does.
// Retention itself needs the feature "rollups".
func (b *Backend) CompactionGrants(user string, features ...string) (string, error) {
	return b.installation.CompactionGrants(user, features...)
}
