package main

// inKafka names tests of the adapter for Kafka.
func inKafka(run string) []tests { return []tests{{"adapters/kafka", ".", run, ""}} }

// brokerMutants break the adapters for brokers.
var brokerMutants = []mutant{
	{
		name: "kafka: a topic that was created again stays unknown",
		file: "adapters/kafka/kafka.go", from: "			p.client.PurgeTopicsFromProducing(records[i].Topic)\n", to: "			_ = p.client\n",
		promise: "an outbox continues when its topic is there again",
		tests:   inKafka("^TestOutboxOutlivesItsBroker$/^its_topic_is_deleted_and_created$"), says: " events to be published",
	},
	{
		name: "kafka: retries of the client hide the error of the broker",
		file: "adapters/kafka/kafka.go", from: "		kgo.RecordRetries(2),\n", to: "		kgo.RecordRetries(200),\n",
		promise: "a processor that waits names the cause",
		tests:   inKafka("^TestOutboxOutlivesItsBroker$/^its_disk_fails$"), says: "the cause to be shown",
	},
	{
		name: "kafka: the client reads the metadata too seldom",
		file: "adapters/kafka/kafka.go", from: "const metadataAge = time.Second\n", to: "const metadataAge = 5 * time.Second\n",
		promise: "a batch takes no longer than its timeout",
		tests:   inKafka("^TestOutboxOutlivesItsBroker$/^its_disk_fails$"), says: "the cause to be shown",
	},
	{
		name: "kafka: the error of a connection is not kept",
		file: "adapters/kafka/kafka.go", from: "	c.err, c.at = err, time.Now()\n", to: "	c.err, c.at = nil, time.Now()\n",
		promise: "a processor that waits names the cause",
		tests:   inKafka("^TestOutboxOutlivesItsBroker$/^it_closes_connections$"), says: "the cause to be shown",
	},
}
