// A stand-in for Azure Event Hubs in memory, over rhea, the library of AMQP below Microsoft's own client for JavaScript. It is ours:
// what it does is what the documents and the clients of Microsoft say of the service, and nobody has compared it with that.
//
//   node server.js PORT [CERTIFICATE KEY]
//
// AMQP at PORT; over TLS at PORT + 2 and in websockets over TLS at PORT + 3, if there is a certificate; a face for tests over HTTP at PORT + 1:
//   POST /publish?hub=H&partition=P&key=K   a message for each line of the body
//   POST /trim?hub=H&partition=P&before=N   the oldest messages are gone
//   POST /break       closes all connections
//   POST /expire      forgets all tokens, and ends all receivers
//   POST /recreate?hub=H   all messages are gone, and numbers begin anew
//   GET  /state       counts of tokens, receivers and connections
//
// Hubs are made on first use, with two partitions (`hub` in names of more: `many-8-logs` has 8). The policy `test` has the key
// `secret`. A token of Entra ID is taken if it is `entra`.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const https = require('https');
const rhea = require('rhea');
const ws = require('ws');

const [port, certificate, key] = [Number(process.argv[2]), process.argv[3], process.argv[4]];
const KEYS = { test: 'secret' };
const hubs = new Map();
const readers = new Set();
const sockets = new Set();
const counts = { tokens: 0, refused: 0, receivers: 0, connections: 0, stolen: 0 };

function hub(name) {
  if (!hubs.has(name)) {
    const many = /^many-(\d+)-/.exec(name);
    const partitions = Array.from({ length: many ? Number(many[1]) : 2 }, () => ({ messages: [], next: 0 }));
    hubs.set(name, { name, partitions });
  }
  return hubs.get(name);
}

// An error that describes what is wrong with a token; nothing if it is right.
function mistake(kind, audience, token) {
  if (kind === 'jwt') return token === 'entra' ? undefined : 'InvalidSignature: the token is none of ours';
  const fields = Object.fromEntries(token.replace('SharedAccessSignature ', '').split('&').map((part) => {
    const at = part.indexOf('=');
    return [part.slice(0, at), part.slice(at + 1)];
  }));
  const secret = KEYS[decodeURIComponent(fields.skn || '')];
  if (!secret) return 'Unauthorized access: there is no such policy';
  const expected = crypto.createHmac('sha256', secret).update(`${fields.sr}\n${fields.se}`).digest('base64');
  if (decodeURIComponent(fields.sig) !== expected) return 'InvalidSignature: the signature is wrong';
  if (decodeURIComponent(fields.sr).toLowerCase() !== audience.toLowerCase()) return 'the token is for another node';
  if (Number(fields.se) * 1000 < Date.now()) return 'ExpiredToken: the token has expired';
  return undefined;
}

// The path of an audience, as `amqps://host/hub/$management`.
function path(audience) {
  return audience.replace(/^[a-z]+:\/\/[^/]*\/?/, '').replace(/\/$/, '').toLowerCase();
}

function isGranted(connection, address) {
  const wanted = address.toLowerCase();
  for (const [granted, until] of connection.granted || []) {
    // Microsoft's client for JavaScript asks the node of the namespace, with the token of that of the hub.
    if (wanted === '$management' && granted.endsWith('/$management')) return true;
    if (until > Date.now() && (wanted === granted || wanted.startsWith(`${granted}/`))) return true;
  }
  return false;
}

function refuse(link, condition, description) {
  link.close({ condition, description });
}

function reply(connection, request, status, description, body) {
  const message = {
    correlation_id: request.message_id,
    application_properties: {
      'status-code': rhea.types.wrap_int(status), 'status-description': description,
      statusCode: rhea.types.wrap_int(status), statusDescription: description,
    },
    body,
  };
  connection.each_link((link) => {
    if (!link.is_sender() || !link.is_open()) return;
    // Microsoft's client for JavaScript names the link, those for Go and Python its target.
    const names = [link.name, link.target && link.target.address];
    if (names.includes(request.reply_to)) link.send(message);
  });
}

function putToken(connection, message) {
  const { type, name } = message.application_properties;
  const wrong = mistake(type, name, String(message.body));
  if (wrong) {
    counts.refused += 1;
    return reply(connection, message, 401, wrong);
  }
  counts.tokens += 1;
  connection.granted = connection.granted || new Map();
  connection.granted.set(path(name), Date.now() + 3600_000);
  return reply(connection, message, 202, 'Accepted');
}

function manage(connection, address, message) {
  const { type, name, partition } = message.application_properties;
  const of = hub(name);
  if (type === 'com.microsoft:eventhub') {
    const ids = of.partitions.map((_, number) => String(number));
    return reply(connection, message, 200, 'OK', {
      name, type, created_at: rhea.types.wrap_timestamp(0), partition_count: of.partitions.length,
      partition_ids: rhea.types.wrap_array(ids, 0xa1), georeplication_factor: rhea.types.wrap_int(1),
    });
  }
  const found = of.partitions[Number(partition)];
  if (!found) return reply(connection, message, 404, `no partition ${partition}`);
  const { messages, next } = found;
  return reply(connection, message, 200, 'OK', {
    name, type, partition,
    begin_sequence_number: rhea.types.wrap_long(messages.length ? messages[0].sequence : next),
    last_enqueued_sequence_number: rhea.types.wrap_long(next - 1),
    last_enqueued_offset: String((next - 1) * 64),
    last_enqueued_time_utc: rhea.types.wrap_timestamp(Date.now()),
    is_partition_empty: messages.length === 0,
    partition_key_type: '',
  });
}

function filterOf(source) {
  const filter = source && source.filter && source.filter['apache.org:selector-filter:string'];
  return filter === undefined ? '' : String(filter.value === undefined ? filter : filter.value);
}

// The number of the first message for which a filter holds.
function place(filter, { messages, next }) {
  if (!filter) return next;
  const found = /x-opt-(offset|sequence-number|enqueued-time)\s*(>=?)\s*'?(@latest|-?\d+)'?/.exec(filter);
  if (!found) return undefined;
  const [, what, operator, text] = found;
  if (text === '@latest') return next;
  const wanted = Number(text);
  if (what === 'offset' && wanted > Math.max((next - 1) * 64, -1)) return undefined;
  const value = { offset: 'offset', 'sequence-number': 'sequence', 'enqueued-time': 'time' }[what];
  const first = messages.find((one) => (operator === '>' ? one[value] > wanted : one[value] >= wanted));
  return first ? first.sequence : next;
}

function pump(reader) {
  const { sender, partition } = reader;
  const behind = partition.messages.length ? reader.position - partition.messages[0].sequence : 0;
  for (let at = Math.max(behind, 0); at < partition.messages.length && sender.sendable(); at += 1) {
    const one = partition.messages[at];
    const annotations = {
      'x-opt-sequence-number': rhea.types.wrap_long(one.sequence),
      'x-opt-offset': String(one.offset),
      'x-opt-enqueued-time': rhea.types.wrap_timestamp(one.time),
    };
    if (one.key) annotations['x-opt-partition-key'] = one.key;
    sender.send({ body: rhea.message.data_section(one.body), message_annotations: annotations });
    reader.position = one.sequence + 1;
  }
}

function pumpAll() {
  for (const reader of readers) pump(reader);
}

function read(sender, address) {
  const [, name, group, id] = /^(.*)\/ConsumerGroups\/(.*)\/Partitions\/(.*)$/.exec(address);
  const partition = hub(name).partitions[Number(id)];
  if (!partition) return refuse(sender, 'amqp:not-found', `there is no partition ${id}`);
  const position = place(filterOf(sender.source), partition);
  if (position === undefined) {
    const last = (partition.next - 1) * 64;
    return refuse(sender, 'com.microsoft:argument-error',
      `The supplied offset is invalid. The last offset in the system is '${last}'`);
  }
  const epoch = sender.properties && sender.properties['com.microsoft:epoch'];
  const level = epoch === undefined ? undefined : Number(epoch.value === undefined ? epoch : epoch.value);
  for (const other of readers) {
    if (other.partition !== partition || other.group !== group || other.level === undefined) continue;
    if (level === undefined || level < other.level) {
      return refuse(sender, 'amqp:link:stolen', 'a reader of a higher epoch has the partition');
    }
    readers.delete(other);
    counts.stolen += 1;
    refuse(other.sender, 'amqp:link:stolen', 'New receiver with higher epoch or the same is created');
  }
  const reader = { sender, partition, group, level, position };
  sender.reader = reader;
  readers.add(reader);
  counts.receivers += 1;
  return pump(reader);
}

function publish(of, partition, body, key) {
  const { messages, next } = partition;
  messages.push({ sequence: next, offset: next * 64, time: Date.now(), body: Buffer.from(body), key });
  partition.next += 1;
}

const container = rhea.create_container({ id: 'eventhub-for-tests' });
container.sasl_server_mechanisms.enable_anonymous();
container.on('connection_open', ({ connection }) => {
  counts.connections += 1;
  sockets.add(connection);
});
container.on('disconnected', ({ connection }) => {
  sockets.delete(connection);
  for (const reader of readers) if (reader.sender.connection === connection) readers.delete(reader);
});
container.on('sender_open', ({ connection, sender }) => {
  const address = (sender.source && sender.source.address) || '';
  sender.set_source(sender.source);
  sender.set_target(sender.target);
  if (address !== '$cbs' && !isGranted(connection, address)) {
    return refuse(sender, 'amqp:unauthorized-access', `Unauthorized access. 'Listen' claim(s) are required for '${address}'`);
  }
  return address.includes('/ConsumerGroups/') ? read(sender, address) : undefined;
});
container.on('sender_close', ({ sender }) => { if (sender.reader) readers.delete(sender.reader); });
container.on('session_close', ({ session }) => {
  for (const reader of readers) if (reader.sender.session === session) readers.delete(reader);
});
container.on('receiver_open', ({ connection, receiver }) => {
  const address = (receiver.target && receiver.target.address) || '';
  receiver.set_source(receiver.source);
  receiver.set_target(receiver.target);
  if (address !== '$cbs' && !isGranted(connection, address)) {
    refuse(receiver, 'amqp:unauthorized-access', `Unauthorized access for '${address}'`);
  }
});
container.on('sendable', ({ sender }) => { if (sender.reader) pump(sender.reader); });
container.on('message', ({ connection, receiver, message }) => {
  const address = receiver.target.address;
  if (address === '$cbs') return putToken(connection, message);
  if (address.endsWith('$management')) return manage(connection, address, message);
  return undefined;
});
for (const event of ['connection_error', 'session_error', 'sender_error', 'receiver_error', 'error']) container.on(event, () => {});

const options = { container_id: 'eventhub-for-tests', max_frame_size: 65536, idle_time_out: 60000 };
container.listen({ ...options, port, host: '127.0.0.1' });
if (certificate) {
  container.listen({
    ...options, port: port + 2, host: '127.0.0.1', transport: 'tls', cert: fs.readFileSync(certificate), key: fs.readFileSync(key),
  });
  const web = https.createServer({ cert: fs.readFileSync(certificate), key: fs.readFileSync(key) });
  const handleProtocols = (protocols) => (protocols.has('amqp') ? 'amqp' : false);
  const websockets = new ws.WebSocketServer({ server: web, path: '/$servicebus/websocket', handleProtocols });
  websockets.on('connection', (socket) => container.websocket_accept(socket, options));
  web.listen(port + 3, '127.0.0.1');
}

const face = http.createServer((request, response) => {
  const url = new URL(request.url, 'http://localhost');
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const of = hub(url.searchParams.get('hub') || 'logs');
    const partition = of.partitions[Number(url.searchParams.get('partition') || 0)];
    const body = Buffer.concat(parts).toString();
    switch (url.pathname) {
      case '/publish':
        for (const line of body.split('\n')) publish(of, partition, line, url.searchParams.get('key') || undefined);
        pumpAll();
        break;
      case '/trim':
        partition.messages = partition.messages.filter((one) => one.sequence >= Number(url.searchParams.get('before')));
        break;
      case '/recreate':
        hubs.delete(of.name);
        break;
      case '/break':
        // That of a websocket has no `destroy`.
        for (const { socket } of sockets) (socket.destroy ? socket.destroy() : socket.end());
        break;
      case '/expire':
        for (const connection of sockets) connection.granted = new Map();
        for (const reader of readers) refuse(reader.sender, 'amqp:unauthorized-access', 'ExpiredToken: the token has expired');
        readers.clear();
        break;
      default:
    }
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ ...counts, readers: readers.size }));
  });
});
face.listen(port + 1, '127.0.0.1');
