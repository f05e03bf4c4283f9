package postgres

// CoreFeature is the tables of elections, for tests of other packages' tools.
var CoreFeature = core
