// Overview: throughput, lag, the ledger and its sum, the outputs and the inputs; now, and in the last 24 hours.

import { Repeat, ask, bytes, cell, clock, count, link, make, pill, short, span, table } from './core.js';
import { Plot } from './plot.js';
import { silent } from './problems.js';

/** What is shown of the time, in milliseconds. */
const RANGES = [['10 min', 600_000], ['1 h', 3_600_000], ['6 h', 21_600_000], ['24 h', 86_400_000]];
const OUTPUTS = ['output', 'state', ...['delivered/s', 'latency', 'requests/s', 'sent again', 'errors', 'dead letters', 'queue', 'sent'].map((text) => ({ text, number: true }))];
const INPUTS = ['input', 'state', ...['files', 'behind', 'oldest line', 'read', 'dropped', 'errors'].map((text) => ({ text, number: true })), 'last error'];

const RECEIVING = ['input', 'state', ...['sources', 'events/s', 'bytes/s', 'read', 'dropped', 'errors', 'lost before us'].map((text) => ({ text, number: true })), 'trouble'];

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
    this.inputs = make('tbody', { id: 'inputs' });
    this.receiving = make('tbody', { id: 'receiving' });
    this.readers = make('section', { class: 'card scroll', 'aria-label': 'Inputs' }, make('h2', {}, 'Inputs'), table('Inputs', INPUTS, this.inputs));
    this.receivers = make('section', { class: 'card scroll', 'aria-label': 'Inputs that receive', hidden: true }, make('h2', {}, 'Inputs that receive'), table('Inputs that receive', RECEIVING, this.receiving));
    /** The inputs that receive as they were at the look before, and when that was. */
    this.received = { at: 0, inputs: new Map() };
    this.plots = [this.events, this.bytes, this.behind, this.flight];
    this.range = RANGES[0][1];
    this.ranges = RANGES.map(([text, ms]) => make('button', { type: 'button', class: 'button', 'data-range': ms, 'aria-pressed': String(ms === this.range), onclick: () => this.choose(ms) }, text));
    this.element = make('div', {},
      make('section', { class: 'card', 'aria-label': 'Ledger' },
        make('h2', {}, 'Ledger ', make('span', { class: 'dim' }, 'every line that was read is in one of these places')),
        this.ledger, this.reasons),
      this.totals,
      make('div', { class: 'bar', role: 'group', 'aria-label': 'Time' }, this.ranges),
      make('div', { class: 'plots' }, this.plots.map((plot) => plot.element)),
      make('section', { class: 'card scroll', 'aria-label': 'Outputs' }, make('h2', {}, 'Outputs'), table('Outputs', OUTPUTS, this.outputs)),
      this.readers, this.receivers,
      this.machine);
    this.live = new Repeat(() => this.look(), () => 1000);
    this.far = new Repeat(() => this.measure(), () => 2500);
    this.past = new Repeat(() => this.remember(), () => 10_000);
    this.past.start();
    // The plots go on while another view is shown.
    this.live.start();
    this.far.start();
  }

  show() {
    for (const plot of this.plots) plot.draw();
  }
  hide() {}

  choose(ms) {
    this.range = ms;
    for (const button of this.ranges) button.setAttribute('aria-pressed', String(Number(button.dataset.range) === ms));
    for (const plot of this.plots) plot.choose(ms === RANGES[0][1] ? null : ms);
    this.past.now();
  }

  /** What the program has kept of the time before. */
  async remember() {
    const range = this.range;
    const { points } = await ask('history', { span_ms: range });
    if (range !== this.range) return;
    const of = (...names) => points.map((point) => ({ time: point.time_ms, stuck: point.stuck, values: names.map((name) => point[name]) }));
    this.events.fill(of('read', 'delivered'));
    this.bytes.fill(of('read_bytes', 'sent_bytes'));
    this.behind.fill(of('behind_bytes'));
    this.flight.fill(of('in_flight'));
  }

  async measure() {
    this.lag = await ask('files', { limit: 0 });
    const { totals } = this.lag;
    const inputs = await ask('../inputs/');
    const receivers = inputs.filter(receives);
    const hasFiles = receivers.length === 0 || receivers.length < inputs.length;
    const told = !hasFiles ? [] : [
      ['files', link('files', {}, count(totals.files))],
      ['behind', link('files', { sort: 'behind' }, `${bytes(totals.behind_bytes)} in ${count(totals.behind_files)} files`)],
      ['oldest unsettled line at least', totals.behind_ms ? span(totals.behind_ms) : 'none'],
      ['caught up in', caughtUp(totals)],
    ];
    if (totals.behind_unknown) told.push(['compressed, not finished', count(totals.behind_unknown)]);
    if (receivers.length) {
      // One that feeds several outputs is there for each of them.
      const open = new Map(receivers.map((input) => [input.skidder.number, input.skidder.sources_open]));
      told.push(['open sources', link('files', {}, count([...open.values()].reduce((total, number) => total + number, 0)))]);
    }
    this.totals.replaceChildren(...told.map(([name, text]) => make('span', {}, `${name} `, make('b', {}, text))));
    document.getElementById('tab-files').textContent = hasFiles ? 'Files' : 'Sources';
    this.readers.hidden = !hasFiles;
    this.receivers.hidden = receivers.length === 0;
    this.inputs.replaceChildren(...inputs.filter((input) => !receives(input)).map(inputRow));
    this.showReceivers(receivers);
  }

  showReceivers(receivers) {
    const [before, at] = [this.received, performance.now()];
    const seconds = (at - before.at) / 1000;
    this.receiving.replaceChildren(...receivers.map((input) => {
      const then = before.inputs.get(placeOf(input));
      const rate = (name) => {
        const more = then ? input.skidder[name] - then.skidder[name] : -1;
        return more < 0 ? null : more / seconds;
      };
      return receiverRow(input, rate('events_total'), rate('bytes_total'));
    }));
    this.received = { at, inputs: new Map(receivers.map((input) => [placeOf(input), input])) };
  }

  async look() {
    let now;
    try {
      now = await ask('live');
    } catch (error) {
      silent();
      this.before = null;
      throw error;
    }
    const before = this.before && now.uptime_ms > this.before.uptime_ms ? this.before : null;
    this.before = now;
    document.getElementById('host').textContent = `${now.host} · ${now.version}`;
    document.getElementById('up').textContent = `up ${span(now.uptime_ms)}`;
    document.title = `skidder · ${now.host}`;
    document.getElementById('tab-containers').hidden = !now.autodiscover;
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
      make('div', { class: 'term', 'data-term': name }, make('b', {}, VIEWS[name] ? link(VIEWS[name], {}, count(number)) : count(number)), make('span', {}, name)),
    ]);
    const sum = (list) => list.reduce((total, [, number]) => total + number, 0);
    const right = sum(came) === sum(went) && ledger.adds_up;
    const verdict = make('span', { class: `pill sum ${right ? 'good' : 'bad'}`, id: 'sum' },
      right ? `✓ adds up to ${count(sum(came))}` : `✗ ${count(sum(came))} ≠ ${count(sum(went))}`);
    this.ledger.replaceChildren(...[...terms(came), make('span', { class: 'sign' }, '='), ...terms(went), verdict].filter(Boolean));
    const reasons = Object.entries(ledger.reasons);
    this.reasons.replaceChildren(...reasons.map(([name, number]) => make('span', {}, `${name} `, make('b', {}, link('plan', {}, count(number))))));
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
      ['read errors', link('files', { state: 'unreadable' }, count(read.errors))],
      ['files lost', count(read.lost)],
    ];
    this.machine.replaceChildren(...told.map(([name, text]) => make('span', {}, `${name} `, make('b', {}, text))));
  }
}

/** Where more about a number of the ledger is to be seen. */
/** Until when nothing is behind; `skidder status` says the same. */
function caughtUp(totals) {
  if (totals.never) return `never: ${totals.never}`;
  if (totals.catch_up_ms) return span(totals.catch_up_ms);
  return totals.behind_bytes ? 'not at this rate' : 'now';
}

const VIEWS = { read: 'files', delivered: 'tail', dropped: 'plan', 'dead-lettered': 'letters' };

/** Whether an input has sources instead of files. */
const receives = (input) => input.skidder.sources_open !== undefined;

const placeOf = (input) => `${input.skidder.number} ${input.output || ''}`;

/** Its name, which leads to its files or sources; its type, and the output that it feeds. */
function inputCell(input) {
  const { name } = input.skidder;
  const kind = input.id ? ` ${input.input}` : '';
  return cell('input', null, link('files', { q: input.id || (receives(input) ? name : '') }, name), make('span', { class: 'dim' }, `${kind}${input.output ? ` → ${input.output}` : ''}`));
}

function stateCell(skidder) {
  const state = skidder.state ? [pill(skidder.state)] : ['–'];
  if (skidder.blocked_ms) state.push(` since ${span(skidder.blocked_ms)}`);
  return cell('state', null, ...state);
}

function receiverRow(input, events, received) {
  const { skidder } = input;
  const { ledger } = skidder;
  const cells = [link('files', { q: input.id || skidder.name }, count(skidder.sources_open)), events === null ? '–' : short(events), received === null ? '–' : `${bytes(received)}/s`,
    count(ledger.read), count(ledger.dropped), count(skidder.errors_total), make('span', { class: skidder.lost_before_total ? 'level-error' : null }, count(skidder.lost_before_total))];
  return make('tr', {}, inputCell(input), stateCell(skidder),
    ...cells.map((text, index) => cell(RECEIVING[index + 2].text, 'number', text)),
    cell('trouble', 'text', skidder.trouble ? make('span', { class: 'level-error' }, skidder.trouble) : '–'));
}

function inputRow(input) {
  const { skidder } = input;
  const { lag, ledger } = skidder;
  const error = skidder.last_error;
  const cells = lag ? [count(lag.files), bytes(lag.behind_bytes), lag.behind_ms ? span(lag.behind_ms) : '–'] : ['–', '–', '–'];
  cells.push(count(ledger.read), count(ledger.dropped), count(input.processing_errors_total));
  return make('tr', {},
    inputCell(input), stateCell(skidder),
    ...cells.map((text, index) => cell(INPUTS[index + 2].text, 'number', text)),
    cell('last error', 'text', error ? [make('span', { class: 'dim' }, `${clock(error.at, true)} `), link('files', { q: error.path }, error.path.split('/').pop()), ` ${error.text}`] : '–'));
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
  const dead = output.dead_letters ? link('letters', output.id ? { output: output.id } : {}, count(output.ledger.dead_lettered)) : count(output.ledger.dead_lettered);
  const cells = [delivered, latency, rate('requests'), again, count(output.errors), dead, filled, bytes(output.write_bytes)];
  return make('tr', {},
    cell('output', null, output.id ? `${output.id} ` : '', make('span', { class: output.id ? 'dim' : null }, output.kind)),
    cell('state', null, ...state),
    ...cells.map((text, index) => cell(OUTPUTS[index + 2].text, 'number', text)));
}
