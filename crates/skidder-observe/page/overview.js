// Overview: throughput, lag, the ledger and its sum, the outputs.

import { Repeat, ask, bytes, count, make, pill, short, span } from './core.js';
import { Plot } from './plot.js';

const perSecond = (write) => (value) => `${write(value)}/s`;

export class Overview {
  name = 'Overview';
  id = 'overview';
  constructor() {
    this.before = null;
    this.rates = {};
    this.lag = null;
    this.ledger = make('div', { class: 'ledger', id: 'ledger' });
    this.reasons = make('div', { class: 'totals', id: 'reasons' });
    this.events = new Plot('Events', [{ name: 'read', color: '--blue' }, { name: 'delivered', color: '--accent' }], perSecond(short), 10);
    this.bytes = new Plot('Bytes', [{ name: 'read', color: '--blue' }, { name: 'sent', color: '--violet' }], perSecond(bytes), 1024);
    this.behind = new Plot('Lag', [{ name: 'bytes behind', color: '--amber' }], bytes, 1024);
    this.flight = new Plot('In flight', [{ name: 'events', color: '--violet' }], short, 10);
    this.outputs = make('tbody', { id: 'outputs' });
    this.totals = make('div', { class: 'totals', id: 'lag' });
    this.machine = make('div', { class: 'totals', id: 'machine' });
    const heads = ['output', 'state', 'delivered/s', 'latency', 'requests/s', 'sent again', 'errors', 'dead letters', 'queue', 'sent'];
    const numbers = new Set(heads.slice(2));
    this.element = make('div', {},
      make('section', { class: 'card', 'aria-label': 'Ledger' },
        make('h2', {}, 'Ledger ', make('span', { class: 'dim' }, 'every line that was read is in one of these places')),
        this.ledger, this.reasons),
      this.totals,
      make('div', { class: 'plots' }, this.events.element, this.bytes.element, this.behind.element, this.flight.element),
      make('section', { class: 'card scroll', 'aria-label': 'Outputs' }, make('h2', {}, 'Outputs'),
        make('table', {},
          make('thead', {}, make('tr', {}, heads.map((head) => make('th', { scope: 'col', class: numbers.has(head) ? 'number' : null }, head)))),
          this.outputs)),
      this.machine);
    this.live = new Repeat(() => this.look(), () => 1000);
    this.far = new Repeat(() => this.measure(), () => 2500);
    // The plots go on while another view is shown.
    this.live.start();
    this.far.start();
  }

  show() {
    for (const plot of [this.events, this.bytes, this.behind, this.flight]) plot.draw();
  }
  hide() {}

  async measure() {
    this.lag = await ask('files', { limit: 0 });
    const { totals } = this.lag;
    const told = [
      ['files', count(totals.files)],
      ['behind', `${bytes(totals.behind_bytes)} in ${count(totals.behind_files)} files`],
      ['oldest unsettled line at least', totals.behind_ms ? span(totals.behind_ms) : 'none'],
      ['caught up in', totals.catch_up_ms ? span(totals.catch_up_ms) : totals.behind_bytes ? 'not at this rate' : 'now'],
    ];
    if (totals.behind_unknown) told.push(['compressed, not finished', count(totals.behind_unknown)]);
    this.totals.replaceChildren(...told.map(([name, text]) => make('span', {}, `${name} `, make('b', {}, text))));
  }

  async look() {
    let now;
    try {
      now = await ask('live');
    } catch (error) {
      pulse('no answer', 'bad');
      this.before = null;
      throw error;
    }
    const before = this.before && now.uptime_ms > this.before.uptime_ms ? this.before : null;
    this.before = now;
    document.getElementById('host').textContent = `${now.host} · ${now.version}`;
    document.getElementById('up').textContent = `up ${span(now.uptime_ms)}`;
    document.title = `skidder · ${now.host}`;
    const blocked = now.outputs.filter((output) => output.state === 'blocked' || output.state === 'ended').length;
    if (!now.ledger.adds_up) pulse('the ledger does not add up', 'bad');
    else if (blocked) pulse(blocked === 1 ? 'an output is stuck' : `${blocked} outputs are stuck`, 'warn');
    else pulse('live', 'good');
    this.showLedger(now.ledger);
    this.plot(now, before);
    this.outputs.replaceChildren(...now.outputs.map((output, index) => row(output, before && before.outputs[index], before ? now.uptime_ms - before.uptime_ms : 0)));
    this.showMachine(now, before);
  }

  showLedger(ledger) {
    const came = [['read', ledger.read]];
    if (ledger.recovered) came.push(['recovered', ledger.recovered]);
    const went = [['delivered', ledger.delivered], ['dropped', ledger.dropped], ['dead-lettered', ledger.dead_lettered]];
    if (ledger.stored) went.push(['in the disk queue', ledger.stored]);
    went.push(['in flight', ledger.in_flight]);
    const terms = (list) => list.flatMap(([name, number], index) => [
      index ? make('span', { class: 'sign' }, '+') : null,
      make('div', { class: 'term', 'data-term': name }, make('b', {}, count(number)), make('span', {}, name)),
    ]);
    const sum = (list) => list.reduce((total, [, number]) => total + number, 0);
    const right = sum(came) === sum(went) && ledger.adds_up;
    const verdict = make('span', { class: `pill sum ${right ? 'good' : 'bad'}`, id: 'sum' },
      right ? `✓ adds up to ${count(sum(came))}` : `✗ ${count(sum(came))} ≠ ${count(sum(went))}`);
    this.ledger.replaceChildren(...[...terms(came), make('span', { class: 'sign' }, '='), ...terms(went), verdict].filter(Boolean));
    const reasons = Object.entries(ledger.reasons);
    this.reasons.replaceChildren(...reasons.map(([name, number]) => make('span', {}, `${name} `, make('b', {}, count(number)))));
    this.reasons.hidden = reasons.length === 0;
  }

  plot(now, before) {
    const time = now.time_ms;
    const span = before ? (now.uptime_ms - before.uptime_ms) / 1000 : 0;
    const rate = (after, earlier) => (span > 0 ? Math.max(0, after - earlier) / span : null);
    const sent = (one) => one.outputs.reduce((total, output) => total + output.write_bytes, 0);
    this.events.add(time, [before ? rate(now.ledger.read, before.ledger.read) : null, before ? rate(now.ledger.delivered, before.ledger.delivered) : null]);
    this.bytes.add(time, [before ? rate(now.ledger.read_bytes, before.ledger.read_bytes) : null, before ? rate(sent(now), sent(before)) : null]);
    this.behind.add(time, [this.lag ? this.lag.totals.behind_bytes : null]);
    this.flight.add(time, [now.ledger.in_flight + now.ledger.stored]);
  }

  showMachine(now, before) {
    const { process, read } = now;
    const spent = before && process.cpu_ms !== null ? (process.cpu_ms - before.process.cpu_ms) / (now.uptime_ms - before.uptime_ms) : null;
    const told = [
      ['memory', bytes(process.resident_bytes)],
      ['processor', spent === null ? '–' : `${(spent * 100).toFixed(0)} % of one core`],
      ['open descriptors', count(process.descriptors)],
      ['open files', count(read.open)],
      ['read errors', count(read.errors)],
      ['files lost', count(read.lost)],
    ];
    this.machine.replaceChildren(...told.map(([name, text]) => make('span', {}, `${name} `, make('b', {}, text))));
  }
}

function pulse(text, kind) {
  const place = document.getElementById('pulse');
  place.className = `pill ${kind}`;
  if (place.textContent !== text) place.textContent = text;
}

function row(output, before, ms) {
  const delta = (key) => (before && ms > 0 ? output[key] - before[key] : null);
  const rate = (key) => (delta(key) === null ? '–' : short((delta(key) * 1000) / ms));
  const requests = delta('requests');
  const latency = requests ? span(delta('latency_ns') / requests / 1e6) : output.requests ? `${span(output.latency_ns / output.requests / 1e6)} mean` : '–';
  const { queue } = output;
  const filled = queue.events_max ? `${count(queue.events)} / ${count(queue.events_max)}` : `${bytes(queue.bytes)} / ${bytes(queue.bytes_max)}`;
  const delivered = before && ms > 0 ? short(((output.ledger.delivered - before.ledger.delivered) * 1000) / ms) : '–';
  const state = [pill(output.state)];
  if (output.blocked_ms) state.push(` since ${span(output.blocked_ms)}`);
  const again = output.retried ? `${count(output.retried)}${output.too_many ? ` (${count(output.too_many)} × 429)` : ''}` : '0';
  const cells = [delivered, latency, rate('requests'), again, count(output.errors), count(output.ledger.dead_lettered), filled, bytes(output.write_bytes)];
  return make('tr', {},
    make('td', {}, output.id ? `${output.id} ` : '', make('span', { class: output.id ? 'dim' : null }, output.kind)),
    make('td', {}, ...state),
    ...cells.map((text) => make('td', { class: 'number' }, text)));
}
