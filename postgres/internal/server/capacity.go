package server

// LockCapacity is the certain capacity of the server's shared lock table:
// max_locks_per_transaction for each of max_connections and max_prepared_transactions.
// The server also counts its own processes and reserves some more memory; neither can be
// relied on.
type LockCapacity struct {
	PerTransaction int // max_locks_per_transaction
	Transactions   int // max_connections + max_prepared_transactions
}

// Size is the number of locks in a full table.
func (c LockCapacity) Size() int { return c.PerTransaction * c.Transactions }

// Usable is the number of locks for elections: half the table. When the table is full,
// the queries of other programs fail, so the other half is theirs.
func (c LockCapacity) Usable() int { return c.Size() / 2 }

// Needed is the smallest max_locks_per_transaction to make so many locks usable.
func (c LockCapacity) Needed(locks int) int {
	transactions := max(1, c.Transactions)
	return max(10, (2*locks+transactions-1)/transactions) // the server accepts no less than 10
}
