// Sends messages to a queue by rhea: node send.js PORT QUEUE COUNT BYTES. Each is a number, filled up with spaces to BYTES; its number
// is its annotation `x-opt-sequence-number`, too. Ends when the broker has accepted all of them.
'use strict';
const rhea = require('rhea');

const [port, queue, count, bytes] = process.argv.slice(2);
let [sent, accepted] = [0, 0];
const connection = rhea.connect({ host: '127.0.0.1', port: Number(port), username: 'test', password: 'secret' });
const sender = connection.open_sender(queue);
sender.on('sendable', () => {
  while (sent < Number(count) && sender.sendable()) {
    const body = rhea.message.data_section(Buffer.from(String(sent).padEnd(Number(bytes))));
    sender.send({ body, message_annotations: { 'x-opt-sequence-number': rhea.types.wrap_long(sent) } });
    sent += 1;
  }
});
sender.on('accepted', () => {
  accepted += 1;
  if (accepted === Number(count)) connection.close();
});
