// A small plot of lines over time: the last ten minutes as they pass, or what the program has kept of a day.

import { make } from './core.js';

const SPAN_MS_MIN = 60_000;
const SPAN_MS_MAX = 600_000;
/** Between two ticks of the time, in seconds. */
const TICKS = [10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10_800, 21_600];

/** A moment before the end: how long before, or the time of day if that is long. */
function ago(seconds, end) {
  if (seconds < 60) return `−${seconds} s`;
  if (seconds < 3600) return seconds % 60 ? `−${seconds} s` : `−${seconds / 60} min`;
  const time = new Date(end - seconds * 1000);
  return `${String(time.getHours()).padStart(2, '0')}:${String(time.getMinutes()).padStart(2, '0')}`;
}

export class Plot {
  /** `series` are `{name, color}` with a color of the style sheet; `write` writes a value; the axis ends at `least` at least. */
  constructor(title, series, write, least) {
    this.series = series.map((one) => ({ ...one, value: make('b', {}, '–') }));
    this.write = write;
    this.least = least;
    /** As they pass. */
    this.points = [];
    /** What was kept, when a longer time is shown. */
    this.kept = [];
    this.range = null;
    this.canvas = make('canvas', { role: 'img', 'aria-label': title });
    const keys = this.series.map((one) => {
      const key = make('span', { class: 'key' }, `${one.name} `, one.value);
      key.style.setProperty('--swatch', `var(${one.color})`);
      return key;
    });
    this.element = make('figure', {}, make('figcaption', {}, make('strong', {}, title), ...keys), this.canvas);
    this.at = null;
    this.canvas.addEventListener('mousemove', (event) => {
      this.at = event.offsetX;
      this.draw();
    });
    this.canvas.addEventListener('mouseleave', () => {
      this.at = null;
      this.draw();
    });
  }

  /** Adds the values of a moment; `null` is a gap. */
  add(time, values) {
    this.points.push({ time, values });
    while (this.points.length && this.points[0].time < time - SPAN_MS_MAX) this.points.shift();
    this.live = true;
    const said = this.series.map((one, index) => `${one.name} ${this.text(values[index])}`);
    this.canvas.setAttribute('aria-label', said.join(', '));
    this.draw();
  }

  /** Shows so much of the time, or what passes. */
  choose(range) {
    this.range = range;
    this.kept = [];
    this.draw();
  }

  /** Takes in what was kept: in place of what passes, or before it. */
  fill(points) {
    this.kept = points;
    this.draw();
  }

  /** What is shown. */
  shown() {
    if (this.range) return this.kept;
    const first = this.live ? this.points[0].time : Infinity;
    return [...this.kept.filter((point) => point.time < first), ...this.points];
  }

  text(value) {
    return value === null || value === undefined ? '–' : this.write(value);
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const points = this.shown();
    if (!width || !points.length) return;
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const paint = this.canvas.getContext('2d');
    const style = getComputedStyle(this.canvas);
    const color = (name) => style.getPropertyValue(name).trim();
    paint.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint.clearRect(0, 0, width, height);
    paint.font = '11px system-ui, "DejaVu Sans", sans-serif';
    const end = points[points.length - 1].time;
    const [left, right, top, bottom] = [62, 6, 8, 18];
    const values = points.flatMap((point) => point.values.filter((value) => value !== null));
    const most = nice(Math.max(this.least, ...values), this.least === 1024 ? 1024 : 10);
    const shownMs = this.range || Math.min(SPAN_MS_MAX, Math.max(SPAN_MS_MIN, end - points[0].time));
    const x = (time) => left + (1 - (end - time) / shownMs) * (width - left - right);
    const y = (value) => top + (1 - value / most) * (height - top - bottom);
    // While an output took nothing.
    paint.fillStyle = color('--red-soft');
    points.forEach((point, index) => {
      if (point.stuck && index) paint.fillRect(x(points[index - 1].time), top, x(point.time) - x(points[index - 1].time), height - top - bottom);
    });
    paint.strokeStyle = color('--line');
    paint.fillStyle = color('--dim');
    paint.lineWidth = 1;
    paint.textAlign = 'right';
    paint.textBaseline = 'middle';
    for (const part of [0, 0.5, 1]) {
      const at = Math.round(y(most * part)) + 0.5;
      paint.beginPath();
      paint.moveTo(left, at);
      paint.lineTo(width - right, at);
      paint.stroke();
      paint.fillText(this.write(most * part), left - 8, at);
    }
    paint.textBaseline = 'alphabetic';
    const most_ticks = Math.max(2, Math.floor((width - left) / 80));
    const step = TICKS.find((tick) => shownMs / tick / 1000 <= most_ticks) || TICKS[TICKS.length - 1];
    for (let seconds = 0; seconds * 1000 < shownMs * 0.97; seconds += step) {
      paint.textAlign = seconds === 0 ? 'right' : 'center';
      paint.fillText(seconds ? ago(seconds, end) : 'now', x(end - seconds * 1000), height - 4);
    }
    this.series.forEach((one, index) => this.line(paint, points, index, color(one.color), x, y, index === 0 ? height - bottom : null));
    const shown = this.at === null ? points[points.length - 1] : this.nearest(points, x);
    if (this.at !== null) {
      paint.strokeStyle = color('--dim');
      paint.lineWidth = 1;
      paint.beginPath();
      paint.moveTo(x(shown.time), top);
      paint.lineTo(x(shown.time), height - bottom);
      paint.stroke();
    }
    this.series.forEach((one, index) => {
      one.value.textContent = this.text(shown.values[index]);
    });
  }

  line(paint, points, index, color, x, y, floor) {
    paint.strokeStyle = color;
    paint.lineWidth = 1.6;
    paint.lineJoin = 'round';
    let first = null;
    let last = null;
    const close = () => {
      if (first === null) return;
      paint.stroke();
      if (floor !== null) {
        paint.lineTo(x(last), floor);
        paint.lineTo(x(first), floor);
        paint.globalAlpha = 0.1;
        paint.fillStyle = color;
        paint.fill();
        paint.globalAlpha = 1;
      }
      first = null;
    };
    for (const point of points) {
      const value = point.values[index];
      if (value === null || value === undefined) {
        close();
        continue;
      }
      if (first === null) {
        paint.beginPath();
        paint.moveTo(x(point.time), y(value));
        first = point.time;
      } else {
        paint.lineTo(x(point.time), y(value));
      }
      last = point.time;
    }
    close();
  }

  nearest(points, x) {
    const distance = (point) => Math.abs(x(point.time) - this.at);
    return points.reduce((best, point) => (distance(point) < distance(best) ? point : best));
  }
}

/** The next of 1, 2, 5, 10 … of a unit; units are powers of 10, or of 1024 for bytes. */
function nice(value, base) {
  let unit = base === 1024 ? 1 : 10 ** Math.floor(Math.log10(value));
  while (base === 1024 && value >= unit * 1024) unit *= 1024;
  for (const step of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1024]) {
    if (value <= step * unit) return step * unit;
  }
  return value;
}
