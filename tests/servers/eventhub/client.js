// Microsoft's own client of Event Hubs with checkpoints in blobs: reads a hub for some seconds, and prints what it has read and
// checkpointed.
//
//   node client.js PORT NAMESPACE STORAGE-CONNECTION-STRING CONTAINER HUB GROUP SECONDS
//
// PORT is that of AMQP over TLS; NODE_EXTRA_CA_CERTS names the authority of its certificate. Each event is a line of JSON:
// {"partition": "0", "sequence": 7, "offset": "448", "body": "…"}; the last line is {"done": true}.
'use strict';
const { EventHubConsumerClient, earliestEventPosition } = require('@azure/event-hubs');
const { BlobCheckpointStore } = require('@azure/eventhubs-checkpointstore-blob');
const { ContainerClient } = require('@azure/storage-blob');

const [port, namespace, storage, container, hub, group, seconds] = process.argv.slice(2);

async function main() {
  const blobs = new ContainerClient(storage, container);
  await blobs.createIfNotExists();
  const access = `Endpoint=sb://${namespace}/;SharedAccessKeyName=test;SharedAccessKey=secret`;
  const options = { customEndpointAddress: `amqps://localhost:${port}`, loadBalancingOptions: { strategy: 'greedy', updateIntervalInMs: 1000 } };
  const client = new EventHubConsumerClient(group, access, hub, new BlobCheckpointStore(blobs), options);
  const subscription = client.subscribe({
    async processEvents(events, context) {
      for (const event of events) {
        const line = { partition: context.partitionId, sequence: event.sequenceNumber, offset: event.offset, body: event.body };
        process.stdout.write(`${JSON.stringify(line)}\n`);
      }
      if (events.length) await context.updateCheckpoint(events[events.length - 1]);
    },
    async processError(error) { process.stderr.write(`${error.stack}\n`); },
  }, { startPosition: earliestEventPosition, maxBatchSize: 100, maxWaitTimeInSeconds: 1 });
  await new Promise((resolve) => { setTimeout(resolve, Number(seconds) * 1000); });
  await subscription.close();
  await client.close();
  process.stdout.write(`${JSON.stringify({ done: true })}\n`);
}

main().then(() => process.exit(0), (error) => { process.stderr.write(`${error.stack}\n`); process.exit(1); });
