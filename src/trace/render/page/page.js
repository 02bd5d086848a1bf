/* SPDX-License-Identifier: Apache-2.0 */
'use strict';
(() => {
  const audit = JSON.parse(document.getElementById('audit').textContent);
  const main = document.getElementById('report');
  const ROW = 20, GROUP = 22, AXIS = 24, GUTTER = 190;

  /* --- small helpers ------------------------------------------------------------------------------------- */
  const make = (tag, props = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(props)) {
      if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
      else if (key === 'class') node.className = value;
      else if (key === 'style') node.style.cssText = value;
      else node.setAttribute(key, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };
  const digits = (value) => value.toLocaleString('en', {maximumFractionDigits: value >= 100 ? 0 : value >= 10 ? 1 : 2});
  const ms = (value) => (value >= 1000 ? `${digits(value / 1000)} s` : value >= 0.1 || value === 0 ? `${digits(value)} ms` : `${digits(value * 1000)} µs`);
  const ns = (value) => ms(value / 1e6);
  const bytes = (value) => {
    const units = ['B', 'KB', 'MB', 'GB', 'TB'];
    let unit = 0;
    while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit++; }
    return `${digits(value)} ${units[unit]}`;
  };
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /* --- the rows' events, out of their packed lists -------------------------------------------------------- */
  const unpack = (flat) => {
    if (!flat) return null;
    const count = flat.length / 5;
    const events = {count, begin: new Float64Array(count), end: new Float64Array(count), name: new Uint32Array(count),
                    bytes: new Float64Array(count), id: new Uint32Array(count)};
    let begin = 0, id = 0;
    for (let i = 0; i < count; i++) {
      begin += flat[5 * i];
      id += flat[5 * i + 4];
      events.begin[i] = begin;
      events.end[i] = begin + flat[5 * i + 1];
      events.name[i] = flat[5 * i + 2];
      events.bytes[i] = flat[5 * i + 3];
      events.id[i] = id;
    }
    return sorted(events);
  };
  /* A prediction may reorder events; drawing and picking want them by begin. */
  const sorted = (events) => {
    for (let i = 1; i < events.count; i++) {
      if (events.begin[i] < events.begin[i - 1]) {
        const order = Array.from({length: events.count}, (_, k) => k).sort((a, b) => events.begin[a] - events.begin[b]);
        for (const key of ['begin', 'end', 'name', 'bytes', 'id']) {
          const old = events[key].slice();
          order.forEach((from, to) => { events[key][to] = old[from]; });
        }
        break;
      }
    }
    return events;
  };
  const rows = audit.rows.map((row) => ({...row, today: unpack(row.today), fixed: unpack(row.fixed)}));
  const hasPrediction = rows.some((row) => row.fixed && row.fixed.count > 0) && audit.all_fixed_ms < audit.span_ms * 0.995;

  /* --- one time axis for both panels --------------------------------------------------------------------- */
  let first = Infinity, last = 0;
  for (const row of rows) {
    for (const events of [row.today, row.fixed]) {
      for (let i = 0; events && i < events.count; i++) {
        first = Math.min(first, events.begin[i]);
        last = Math.max(last, events.end[i]);
      }
    }
  }
  if (!(first < last)) { first = 0; last = 1; }
  const workBegin = audit.work_begin_ns, workEnd = Math.max(audit.work_end_ns, audit.work_begin_ns + 1);
  const view = {from: workBegin, to: workEnd};
  const panels = [];
  let highlighted = null, pending = false;

  const redraw = () => {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; panels.forEach((panel) => panel.draw()); });
  };
  const look = (from, to) => {
    const least = 50, most = (last - first) * 1.1;
    let width = Math.min(Math.max(to - from, least), most);
    let middle = (from + to) / 2;
    middle = Math.min(Math.max(middle, first), last);
    view.from = middle - width / 2;
    view.to = middle + width / 2;
    redraw();
  };
  const zoom = (factor, at) => look(at - (at - view.from) * factor, at + (view.to - at) * factor);

  const layout = () => {
    const lines = [];
    let y = AXIS, group = null;
    for (const row of rows) {
      if (row.group !== group) { lines.push({title: row.group, y}); y += GROUP; group = row.group; }
      lines.push({row, y});
      y += ROW;
    }
    return {lines, height: y + 6};
  };

  const kindColor = (kind, row, events, i) => {
    const name = audit.names[events.name[i]] || '';
    if (row.kind === 't') return /synchronize/i.test(name) ? '--mark' : '--call';
    if (row.kind === 's') return /memcpy|copy/i.test(name) ? (/DtoH|D2H/i.test(name) ? '--out' : '--in') : /memset/i.test(name) ? '--other' : '--kernel';
    return {i: '--in', o: '--out', k: '--kernel', f: '--other'}[row.kind];
  };
  const firstVisible = (events, time) => {
    let low = 0, high = events.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (events.end[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  };

  class Panel {
    constructor(key, title) {
      this.key = key;
      this.canvas = make('canvas', {tabindex: '0', role: 'img', 'aria-label': `${title}: timeline. Arrow keys move, plus and minus zoom, 0 shows all.`});
      this.node = make('div', {class: 'panel'}, make('h3', {}, title), make('div', {class: 'view'}, this.canvas));
      this.lines = layout();
      this.listen();
    }
    listen() {
      const timeAt = (event) => {
        const box = this.canvas.getBoundingClientRect();
        return view.from + (event.clientX - box.left - GUTTER) / (box.width - GUTTER) * (view.to - view.from);
      };
      this.canvas.addEventListener('wheel', (event) => {
        if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaY) > 0 && event.altKey) return;
        event.preventDefault();
        if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          const step = event.deltaX / this.canvas.clientWidth * (view.to - view.from);
          look(view.from + step, view.to + step);
        } else {
          zoom(Math.exp(event.deltaY * 0.0016), timeAt(event));
        }
      }, {passive: false});
      let drag = null;
      this.canvas.addEventListener('pointerdown', (event) => { drag = {x: event.clientX, from: view.from, to: view.to}; this.canvas.setPointerCapture(event.pointerId); });
      this.canvas.addEventListener('pointerup', () => { drag = null; });
      this.canvas.addEventListener('pointermove', (event) => {
        if (drag) {
          const step = (drag.x - event.clientX) / (this.canvas.clientWidth - GUTTER) * (drag.to - drag.from);
          look(drag.from + step, drag.to + step);
          return;
        }
        this.tell(event, timeAt(event));
      });
      this.canvas.addEventListener('pointerleave', () => { tip.style.display = 'none'; });
      this.canvas.addEventListener('dblclick', (event) => zoom(0.25, timeAt(event)));
      this.canvas.addEventListener('keydown', (event) => {
        const width = view.to - view.from, middle = (view.from + view.to) / 2;
        const act = {ArrowLeft: () => look(view.from - width / 5, view.to - width / 5), ArrowRight: () => look(view.from + width / 5, view.to + width / 5),
                     '+': () => zoom(0.6, middle), '=': () => zoom(0.6, middle), '-': () => zoom(1.7, middle), 0: () => look(workBegin, workEnd)}[event.key];
        if (act) { event.preventDefault(); act(); }
      });
    }
    /* What lies under the pointer, in words. */
    tell(event, time) {
      const box = this.canvas.getBoundingClientRect();
      const y = event.clientY - box.top;
      const line = this.lines.lines.find((candidate) => candidate.row && y >= candidate.y && y < candidate.y + ROW);
      const events = line && line.row[this.key];
      const reach = (view.to - view.from) / (box.width - GUTTER) * 3;
      let best = -1;
      for (let i = events ? firstVisible(events, time - reach) : 0; events && i < events.count && events.begin[i] <= time + reach; i++) {
        const miss = Math.max(events.begin[i] - time, time - events.end[i], 0);
        if (best < 0 || miss < Math.max(events.begin[best] - time, time - events.end[best], 0)) best = i;
      }
      if (best < 0) { tip.style.display = 'none'; return; }
      const length = events.end[best] - events.begin[best];
      const size = events.bytes[best];
      tip.textContent = `${audit.names[events.name[best]]} · ${ns(length)} · at ${ns(events.begin[best] - workBegin)}` +
        (size > 0 && length > 0 ? ` · ${bytes(size)}, ${digits(size / length)} GB/s` : '');
      tip.style.display = 'block';
      tip.style.left = `${Math.min(event.clientX + 14, innerWidth - 470)}px`;
      tip.style.top = `${event.clientY + 18}px`;
    }
    draw() {
      const width = this.canvas.clientWidth, height = this.lines.height, scale = devicePixelRatio || 1;
      this.canvas.width = width * scale;
      this.canvas.height = height * scale;
      this.canvas.style.height = `${height}px`;
      const paint = this.canvas.getContext('2d');
      paint.scale(scale, scale);
      paint.font = '12px system-ui, sans-serif';
      paint.textBaseline = 'middle';
      this.drawAxis(paint, width, height);
      for (const line of this.lines.lines) {
        if (line.title !== undefined) {
          paint.fillStyle = color('--ink');
          paint.fillText(line.title, 8, line.y + GROUP / 2, width - 16);
          continue;
        }
        paint.fillStyle = color('--soft');
        paint.fillText(line.row.label, 18, line.y + ROW / 2, GUTTER - 26);
        if (line.row[this.key]) this.drawRow(paint, line, width);
      }
    }
    drawAxis(paint, width, height) {
      const span = view.to - view.from, pixels = width - GUTTER;
      const rough = span / Math.max(2, Math.floor(pixels / 110));
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
      for (let t = Math.ceil((view.from - workBegin) / step) * step; t <= view.to - workBegin; t += step) {
        const x = GUTTER + (t + workBegin - view.from) / span * pixels;
        paint.fillStyle = color('--line');
        paint.fillRect(Math.round(x), AXIS - 4, 1, height);
        paint.fillStyle = color('--soft');
        paint.fillText(ns(Math.abs(t) < step / 2 ? 0 : t).replace(/^-?/, t < -step / 2 ? '−' : ''), x + 3, AXIS / 2);
      }
    }
    drawRow(paint, line, width) {
      const events = line.row[this.key], span = view.to - view.from, pixels = width - GUTTER;
      const colors = {};
      let covered = -1;
      for (let i = firstVisible(events, view.from); i < events.count && events.begin[i] < view.to; i++) {
        const x0 = Math.max(GUTTER, GUTTER + (events.begin[i] - view.from) / span * pixels);
        const x1 = Math.max(x0 + 0.7, GUTTER + (events.end[i] - view.from) / span * pixels);
        const marked = highlighted !== null && highlighted.has(events.id[i]);
        if (x1 <= covered && !marked) continue; /* several events a pixel: one is enough */
        covered = Math.max(covered, Math.ceil(x1 * 2) / 2 - 0.5);
        const name = marked ? '--mark' : kindColor(line.row.kind, line.row, events, i);
        paint.globalAlpha = highlighted !== null && !marked ? 0.3 : 1;
        paint.fillStyle = colors[name] || (colors[name] = color(name));
        paint.fillRect(x0, line.y + 3, Math.min(x1, width) - x0, ROW - 6);
        if (x1 - x0 > 60) {
          paint.globalAlpha = 1;
          paint.fillStyle = color('--card');
          paint.save();
          paint.beginPath();
          paint.rect(x0 + 4, line.y, Math.min(x1, width) - x0 - 8, ROW);
          paint.clip();
          paint.fillText(audit.names[events.name[i]], x0 + 5, line.y + ROW / 2);
          paint.restore();
        }
      }
      paint.globalAlpha = 1;
    }
  }

  /* --- the page ------------------------------------------------------------------------------------------ */
  const tip = make('div', {id: 'tip'});
  const root = document.documentElement;
  root.dataset.theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  const themeButton = make('button', {type: 'button', onclick: () => {
    root.dataset.theme = root.dataset.theme === 'dark' ? 'light' : 'dark';
    redraw();
  }}, 'light / dark');

  const headline = () => {
    const binds = audit.bound ? `${audit.bound[0].toUpperCase()}${audit.bound.slice(1)} ${/s$/.test(audit.bound) ? 'bind' : 'binds'}.` : '';
    if (audit.verdict === 'cannot-tell') return `Cannot tell: ${audit.reason}`;
    const wrong = audit.findings.some((finding) => finding.kind === 'defect');
    if (audit.verdict === 'found' && wrong && audit.all_fixed_ms >= audit.span_ms * 0.995) return `This run takes ${ms(audit.span_ms)}. What was found is about right results, not about time. ${binds}`;
    if (audit.verdict === 'clean' || audit.all_fixed_ms >= audit.span_ms * 0.995) return `This run takes ${ms(audit.span_ms)}, and nothing found would make it shorter. ${binds}`;
    return `This run takes ${ms(audit.span_ms)}. It could take ${ms(audit.all_fixed_ms)}. ${binds ? `Then ${binds[0].toLowerCase()}${binds.slice(1)}` : ''}`;
  };
  const bars = () => {
    const grid = make('div', {class: 'bars', role: 'list'});
    const add = (label, value, fixed) => grid.append(make('span', {}, label),
      make('div', {class: 'track'}, make('div', {class: fixed ? 'bar fixed' : 'bar', style: `width:${Math.min(100, value / audit.span_ms * 100)}%`})),
      make('span', {class: 'value'}, ms(value)));
    add('today', audit.span_ms, false);
    for (const finding of audit.findings) {
      if (finding.kind === 'defect' && finding.after_ms > 0 && finding.after_ms < audit.span_ms) add(`without ${finding.rule}`, finding.after_ms, true);
    }
    if (audit.all_fixed_ms < audit.span_ms && audit.findings.length > 1) add('all fixed', audit.all_fixed_ms, true);
    return grid;
  };

  const cards = [];
  const show = (finding, card, button) => {
    const same = card.classList.contains('on');
    cards.forEach(([other, otherButton]) => { other.classList.remove('on'); otherButton.setAttribute('aria-pressed', 'false'); });
    highlighted = same ? null : new Set(finding.events);
    if (!same) {
      card.classList.add('on');
      button.setAttribute('aria-pressed', 'true');
      document.getElementById('timeline').scrollIntoView({behavior: 'smooth', block: 'start'});
    }
    redraw();
  };
  const findingCard = (finding) => {
    const button = make('button', {type: 'button', 'aria-pressed': 'false'}, 'show in the timeline');
    const gain = finding.kind === 'defect' && finding.after_ms > 0
      ? make('span', {class: 'cost'}, `costs ${ms(finding.cost_ms)}; alone fixed: `, make('span', {class: 'gain'}, ms(finding.after_ms))) : make('span', {class: 'soft'}, finding.kind);
    const places = make('table', {}, make('tr', {}, ...['call', 'thread', 'stream', 'count', 'bytes', 'first at', 'blocked'].map((text) => make('th', {}, text))),
      ...finding.where.map((where) => make('tr', {}, make('td', {}, make('code', {}, where.api || '(on the device)')), make('td', {}, where.thread || '–'), make('td', {}, where.stream || '–'),
        make('td', {}, where.count.toLocaleString('en')), make('td', {}, where.bytes ? bytes(where.bytes) : '–'), make('td', {}, ms(where.first_ms)), make('td', {}, where.blocked_ms ? ms(where.blocked_ms) : '–'))));
    const card = make('section', {class: `finding ${finding.kind}`},
      make('div', {class: 'top'}, make('span', {class: 'rule'}, finding.rule), gain, make('span', {class: 'soft'}, `${finding.count.toLocaleString('en')} ×${finding.bytes ? `, ${bytes(finding.bytes)}` : ''}`),
        finding.events.length > 0 ? button : null),
      make('p', {}, finding.text),
      finding.masked ? make('p', {class: 'soft'}, 'Fixed alone it gains nothing; it hides behind another finding.') : null,
      finding.fix ? make('p', {class: 'fix'}, make('strong', {}, 'Fix: '), finding.fix) : null,
      finding.proof ? make('p', {class: 'soft'}, make('strong', {}, 'Check: '), finding.proof) : null,
      finding.where.length > 0 ? make('details', {}, make('summary', {}, `where (${finding.where_count})`), make('div', {class: 'scroll'}, places)) : null);
    button.addEventListener('click', () => show(finding, card, button));
    cards.push([card, button]);
    return card;
  };
  const devicesTable = () => make('div', {class: 'scroll'}, make('table', {},
    make('tr', {}, ...['device', 'span', 'kernels', 'copies', 'in', 'out', 'overlap', 'idle'].map((text) => make('th', {}, text))),
    ...audit.devices.map((device) => {
      const speed = (size, time) => (time > 0 ? ` (${digits(size / time / 1e6)} GB/s)` : '');
      return make('tr', {}, make('td', {}, `${device.id}: ${device.name}`), make('td', {}, ms(device.span_ms)), make('td', {}, ms(device.kernel_ms)), make('td', {}, ms(device.copy_ms)),
        make('td', {}, bytes(device.h2d_bytes) + speed(device.h2d_bytes, device.h2d_ms)), make('td', {}, bytes(device.d2h_bytes) + speed(device.d2h_bytes, device.d2h_ms)),
        make('td', {}, ms(device.overlap_ms)), make('td', {}, ms(device.idle_ms)));
    })));

  const legend = make('div', {class: 'legend'}, ...[['--in', 'copy in'], ['--kernel', 'kernel'], ['--out', 'copy out'], ['--other', 'fill'], ['--call', 'host call'], ['--mark', 'wait, or what a finding speaks of']]
    .map(([name, text]) => make('span', {}, make('i', {style: `background:var(${name})`}), text)));
  const tools = make('div', {class: 'tools'}, make('button', {type: 'button', onclick: () => zoom(0.5, (view.from + view.to) / 2)}, 'zoom in'),
    make('button', {type: 'button', onclick: () => zoom(2, (view.from + view.to) / 2)}, 'zoom out'), make('button', {type: 'button', onclick: () => look(workBegin, workEnd)}, 'device work'),
    make('button', {type: 'button', onclick: () => look(first, last)}, 'everything'), legend);

  main.replaceChildren(
    make('header', {}, make('strong', {}, 'headrace audit'), make('span', {class: 'file'}, audit.path), themeButton),
    make('h1', {}, headline()),
    audit.replayed_ms > 0 ? make('p', {class: 'soft'}, `Replayed unchanged, the run takes ${ms(audit.replayed_ms)}: the model is ${digits(Math.abs(audit.replayed_ms / audit.span_ms - 1) * 100)} % off.`) : null,
    bars(),
    make('h2', {}, audit.findings.length > 0 ? 'Findings' : 'No findings'), ...audit.findings.map(findingCard),
    make('h2', {}, 'Devices'), devicesTable(),
    make('h2', {id: 'timeline'}, 'Timeline'), make('p', {class: 'soft'}, 'Wheel zooms, dragging moves, a double click zooms in.'), tools);
  panels.push(new Panel('today', 'today'));
  if (hasPrediction) panels.push(new Panel('fixed', 'predicted, with everything fixed'));
  main.append(...panels.map((panel) => panel.node));
  if (audit.left_out > 0) main.append(make('p', {class: 'soft'}, `${audit.left_out.toLocaleString('en')} events shorter than ${digits(audit.shortest_us)} µs are not drawn.`));
  document.body.append(tip);
  addEventListener('resize', redraw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => { root.dataset.theme = event.matches ? 'dark' : 'light'; redraw(); });
  redraw();
})();
