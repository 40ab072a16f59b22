'use strict';
// All text from the program is added as text, never as markup.

const base = document.documentElement.dataset.base;
const $ = (id) => document.getElementById(id);
const POINTS = 60; // One per second.
const TAIL = 150;
const NOT_REACHED = 'program not reached';
const FAR_BEHIND = 5000; // Milliseconds that an event has waited for a handler.

/** Creates an element: attributes by name, `text` for its text, `on…` for listeners. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'text') element.textContent = value;
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children);
  return element;
}

/** Sets text only if it differs, so that selections and screen readers are not disturbed. */
function put(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** Returns a name with places where a line may end: after its separators, so that no word is broken. */
function pieces(name) { return name.split(/(?<=[./_:-])/).flatMap((piece, at) => at === 0 ? [piece] : [make('wbr'), piece]); }

function putName(element, name) { if (element.textContent !== name) element.replaceChildren(...pieces(name)); }

function putClass(element, name) { if (element.className !== name) element.className = name; }

/** Updates the texts of a list in place. */
function putItems(list, texts) {
  while (list.children.length > texts.length) list.lastChild.remove();
  while (list.children.length < texts.length) list.append(make('li'));
  texts.forEach((text, at) => put(list.children[at], text));
}

// Formatting of figures.

const whole = new Intl.NumberFormat('en');
const number = (value) => whole.format(value);
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
function rate(value) { return value >= 100 ? number(Math.round(value)) : value >= 9.95 || value === 0 ? value.toFixed(0) : value.toFixed(1); }
function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) { value /= 1024; at += 1; }
  return `${at === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[at]}`;
}
function span(ms) {
  if (ms === null || ms === undefined) return 'never';
  if (ms === 0) return '0 ms';
  if (ms < 1) return `${(ms * 1000).toFixed(0)} µs`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}
const clock = (ms) => new Date(ms).toLocaleTimeString('en-GB');
const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;

// States of informers.

const PHASES = {
  new: ['none', 'not started'], listing: ['busy', 'listing'], streaming: ['busy', 'streaming the first list'], watching: ['good', 'watching'], absent: ['none', 'absent (optional)'],
  backing_off: ['bad', 'backing off'], parked: ['bad', 'parked'], stopped: ['over', 'stopped'], unknown: ['none', 'unknown'],
};
const WORST = ['stopped', 'parked', 'backing_off', 'new', 'unknown', 'listing', 'streaming', 'absent', 'watching'];

/** Returns the state of the part in the worst state. */
function stateOf(informer) {
  const worst = [...informer.parts].sort((a, b) => WORST.indexOf(a.phase.state) - WORST.indexOf(b.phase.state))[0];
  const phase = worst ? worst.phase : { state: 'unknown' };
  const [tone, words] = PHASES[phase.state] ?? PHASES.unknown;
  const relists = phase.state === 'listing' || phase.state === 'streaming';
  const said = relists && informer.synced ? 'listing again' : words;
  // A watch without messages is not healthy.
  if (phase.state === 'watching' && !informer.fresh) return { phase, tone: 'bad', words: 'watching, not fresh', part: worst };
  return { phase, tone, words: said, part: worst };
}

function progress(phase) {
  if (phase.state === 'listing' && phase.remaining !== null && phase.remaining !== undefined) return `${number(phase.received)} of ${number(phase.received + phase.remaining)} received`;
  if (phase.state === 'listing' || phase.state === 'streaming') return `${number(phase.received)} received`;
  if (phase.state === 'backing_off' || phase.state === 'parked') return `retries in ${(phase.left_ms / 1000).toFixed(1)} s`;
  if (phase.state === 'absent') return `for ${(phase.for_ms / 1000).toFixed(0)} s`;
  return '';
}

// The state of the page.

const known = { overview: null, chosen: null, series: new Map(), states: new Map(), samples: new Map() };

function chosen() { return known.overview?.informers.find((informer) => informer.id === known.chosen) ?? null; }
const sum = (list, of) => list.reduce((total, item) => total + of(item), 0);
const most = (list, of) => list.reduce((highest, item) => Math.max(highest, of(item)), 0);

function learn(overview) {
  known.overview = overview;
  if (!overview.informers.some((informer) => informer.id === known.chosen)) {
    const busiest = [...overview.informers].sort((a, b) => b.counts.events - a.counts.events)[0];
    known.chosen = busiest ? busiest.id : null;
    objects.reset();
  }
  const waits = sum(overview.queues, (queue) => queue.waiting + queue.processing);
  for (const informer of overview.informers) {
    const before = known.samples.get(informer.id);
    const seconds = before ? (overview.at_ms - before.at_ms) / 1000 : 0;
    // A change of phase is sent at once: the interval is then too short for a rate.
    if (before && seconds < 0.85) continue;
    known.samples.set(informer.id, { at_ms: overview.at_ms, events: informer.counts.events, bytes: informer.counts.wire_bytes });
    if (!before) continue;
    const series = known.series.get(informer.id) ?? { events: [], bytes: [], lag: [], work: [] };
    known.series.set(informer.id, series);
    series.events.push(Math.max(0, informer.counts.events - before.events) / seconds);
    series.bytes.push(Math.max(0, informer.counts.wire_bytes - before.bytes) / seconds);
    series.lag.push(most(informer.handlers, (handler) => handler.lag_ms));
    series.work.push(waits);
    for (const points of Object.values(series)) if (points.length > POINTS) points.shift();
  }
  const news = [];
  for (const informer of overview.informers) {
    const state = stateOf(informer);
    const before = known.states.get(informer.id);
    if (before && before !== state.words) news.push(log(overview.at_ms, informer, before, state));
    known.states.set(informer.id, state.words);
  }
  if (news.length) put($('announce'), news.join('. '));
  for (const id of [...known.states.keys()]) {
    if (!overview.informers.some((informer) => informer.id === id)) { known.states.delete(id); known.series.delete(id); known.samples.delete(id); }
  }
}

/** Adds a change of state to the list, and returns it as a sentence. */
function log(at, informer, before, state) {
  const why = state.phase.why ?? '';
  const item = make('li', {}, make('time', { text: clock(at) }), make('b', {}, ...pieces(informer.name)), ` ${before} → `,
    make('span', { class: `state ${state.tone}`, text: state.words }));
  if (why) item.append(make('div', { class: 'why', text: why }));
  $('log').prepend(item);
  while ($('log').children.length > 12) $('log').lastChild.remove();
  $('no-log').hidden = true;
  return `${informer.name} is ${state.words}${why ? `: ${why}` : ''}`;
}

// Drawing.

function draw() {
  const overview = known.overview;
  if (!overview) return;
  put($('title'), overview.title);
  document.title = `${overview.title} · informers`;
  const total = sum(overview.informers, (informer) => informer.objects);
  put($('summary'), `${plural(overview.informers.length, 'informer', 'informers')}, ${plural(total, 'object', 'objects')}`);
  drawOverall(overview);
  drawChoices(overview);
  drawInformers(overview);
  drawQueues(overview.queues, overview.elections);
  const informer = chosen();
  drawPipeline(informer, overview.queues);
  drawTrends(informer);
  drawDetails(informer);
  objects.offer(informer);
}

/** Returns the handler that is far behind, if any: the slowest one. */
function late(informer) {
  const [slowest] = [...informer.handlers].sort((a, b) => b.lag_ms - a.lag_ms);
  return slowest && slowest.lag_ms >= FAR_BEHIND ? slowest : null;
}

function drawOverall(overview) {
  const states = overview.informers.map((informer) => {
    const [state, handler] = [stateOf(informer), late(informer)];
    return state.tone === 'good' && handler ? { informer, tone: 'bad', words: `handler ${handler.name} is far behind` } : { informer, ...state };
  });
  const wrong = states.filter((state) => state.tone === 'bad' || state.tone === 'over');
  const busy = states.filter((state) => state.tone === 'busy' || state.tone === 'none');
  let [tone, words] = ['good', 'all watching'];
  if (!states.length) [tone, words] = ['none', 'no informers'];
  else if (wrong.length === 1) [tone, words] = [wrong[0].tone, `${wrong[0].informer.name}: ${wrong[0].words}`];
  else if (wrong.length) [tone, words] = [wrong[0].tone, `${wrong.length} informers have a problem`];
  else if (busy.length) [tone, words] = [busy[0].tone, `${busy[0].informer.name}: ${busy[0].words}`];
  connection.says(tone, words);
}

function drawChoices(overview) {
  const ids = overview.informers.map((informer) => informer.id);
  for (const [select, first] of [[$('choose'), []], [$('tail-of'), ['']]]) {
    const wanted = [...first, ...ids];
    const there = [...select.options].map((option) => option.value);
    if (wanted.join('\n') === there.join('\n')) continue;
    const value = select.value;
    select.replaceChildren(...wanted.map((id) => make('option', { value: id, text: id || 'all informers' })));
    select.value = wanted.includes(value) ? value : wanted[0] ?? '';
  }
  if (known.chosen !== null && $('choose').value !== known.chosen) $('choose').value = known.chosen;
}

/** Returns rows by key, and creates missing ones. */
function rows(table, keys, makeRow) {
  const body = table.tBodies[0];
  const there = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  keys.forEach((key, at) => {
    const row = there.get(key) ?? makeRow(key);
    row.dataset.key = key;
    if (body.rows[at] !== row) body.insertBefore(row, body.rows[at] ?? null);
  });
  while (body.rows.length > keys.length) body.lastElementChild.remove();
  return [...body.rows];
}

const cell = (label, extra = 'number') => make('td', { class: extra, 'data-label': label });

function drawInformers(overview) {
  const made = rows($('informers'), overview.informers.map((informer) => informer.id), (id) =>
    make('tr', {}, make('td', {}, make('button', { class: 'pick', type: 'button', onclick: () => choose(id) })),
      make('td', { class: 'wide' }, make('span', { class: 'state' }), make('div', { class: 'why' })),
      cell('objects'), cell('events/s'), cell('backlog'), cell('last contact'), cell('lists')));
  overview.informers.forEach((informer, at) => {
    const row = made[at];
    const state = stateOf(informer);
    const [name, stateCell, objectsCell, eventsCell, backlogCell, ageCell, listsCell] = row.cells;
    putName(name.firstChild, informer.id);
    name.firstChild.setAttribute('aria-pressed', String(informer.id === known.chosen));
    putClass(row, informer.id === known.chosen ? 'chosen' : '');
    const [words, why] = stateCell.children;
    putClass(words, `state ${state.tone}`);
    put(words, state.words);
    const trouble = state.phase.why ?? state.part?.last_error ?? '';
    put(why, trouble);
    why.hidden = !trouble;
    const series = known.series.get(informer.id);
    put(objectsCell, number(informer.objects));
    put(eventsCell, series?.events.length ? rate(series.events.at(-1)) : '–');
    put(backlogCell, number(sum(informer.handlers, (handler) => handler.backlog)));
    put(ageCell, informer.age_ms === null ? 'never' : span(informer.age_ms));
    put(listsCell, number(sum(Object.values(informer.counts.lists), (count) => count)));
  });
  $('no-informers').hidden = overview.informers.length > 0;
  $('informers').hidden = overview.informers.length === 0;
}

function drawQueues(queues, elections) {
  $('queues-panel').hidden = queues.length === 0 && elections.length === 0;
  $('queues').hidden = queues.length === 0;
  const keys = queues.map((queue, at) => `${at} ${queue.name}`);
  const made = rows($('queues'), keys, () => make('tr', {}, make('td', {}, make('b')),
    cell('waiting'), cell('processing'), cell('delayed'), cell('done'), cell('failed')));
  queues.forEach((queue, at) => {
    const [name, ...figures] = made[at].cells;
    putName(name.firstChild, queue.name || 'unnamed');
    [queue.waiting, queue.processing, queue.delayed + queue.parked, queue.worked, queue.failures].forEach((figure, i) => put(figures[i], number(figure)));
  });
  putItems($('times'), queues.filter((queue) => queue.times || queue.last_error).map((queue) => {
    const times = queue.times ? `median time ${span(queue.times.median_ms)}, longest ${span(queue.times.longest_ms)}` : '';
    return `${queue.name || 'unnamed'}: ${[times, queue.last_error && `last error: ${queue.last_error}`].filter(Boolean).join(', ')}`;
  }));
  drawFailing(queues);
  drawElections(elections);
}

/** Shows the failing keys of each queue that has some. */
function drawFailing(queues) {
  const list = $('failing');
  const failing = queues.filter((queue) => queue.failing_items > 0);
  const head = () => make('thead', {}, make('tr', {}, ...['key', 'attempts', 'next try'].map((title, at) => make('th', { scope: 'col', class: at > 0 && 'number', text: title }))));
  while (list.children.length > failing.length) list.lastChild.remove();
  while (list.children.length < failing.length) list.append(make('details', {}, make('summary', { class: 'bad' }), make('table', { class: 'cards' }, head(), make('tbody'))));
  failing.forEach((queue, at) => {
    const [summary, table] = list.children[at].children;
    put(summary, `▲ ${queue.name || 'unnamed'}: ${plural(queue.failing_items, 'key fails', 'keys fail')}`);
    table.setAttribute('aria-label', `Failing keys of ${queue.name || 'unnamed'}`);
    const made = rows(table, queue.failing.map((item) => item.item), () => make('tr', {}, make('td', {}, make('b', { class: 'mono' }), make('div', { class: 'why' })), cell('attempts'), cell('next try')));
    queue.failing.forEach((item, at) => {
      const [key, attempts, next] = made[at].cells;
      putName(key.firstChild, item.item);
      put(key.lastChild, item.why);
      put(attempts, number(item.attempts));
      put(next, item.next_try_ms === null ? 'not planned' : item.next_try_ms === 0 ? 'now' : `in ${span(item.next_try_ms)}`);
    });
  });
}

function drawElections(elections) {
  putItems($('elections'), elections.map(({ lease, identity, leader, leads, term_left_ms }) => {
    if (leads) return `Lease ${lease}: this program leads as ${identity}, its term is valid for ${span(term_left_ms)}`;
    return leader ? `Lease ${lease}: ${leader} leads, this program (${identity}) stands by` : `Lease ${lease}: no leader is known, this program (${identity}) stands by`;
  }));
}

function stage(id, tone, figure, unit, items, words = false) {
  const element = $(id);
  putClass(element, `stage ${tone}`);
  const shown = element.querySelector('.figure');
  shown.classList.toggle('words', words);
  const text = unit ? `${figure}\u200a` : figure;
  if (shown.dataset.text !== `${text}|${unit}`) {
    shown.dataset.text = `${text}|${unit}`;
    shown.replaceChildren(text, ...(unit ? [make('small', { text: unit })] : []));
  }
  putItems(element.querySelector('ul'), items.filter(Boolean));
}

function drawPipeline(informer, queues) {
  $('pipeline').hidden = !informer;
  if (!informer) return;
  const state = stateOf(informer);
  const series = known.series.get(informer.id);
  const flowing = (series?.events.at(-1) ?? 0) > 0;
  $('pipeline').classList.toggle('flowing', flowing);
  const { counts, handlers } = informer;
  const broken = state.tone === 'bad' || state.tone === 'over';
  const heard = informer.age_ms !== null;
  stage('stage-source', broken ? 'cut' : 'good', heard ? span(informer.age_ms) : 'no contact', heard ? 'silent' : '', [
    `${bytes(counts.wire_bytes)} received`, plural(counts.watches, 'watch', 'watches'), counts.failures ? '' : 'no failures'], !heard);
  $('open-failures').hidden = counts.failures === 0;
  put($('open-failures'), plural(counts.failures, 'failure', 'failures'));
  const reasons = Object.entries(counts.lists).map(([reason, count]) => `${count} ${reason}`).join(', ');
  stage('stage-reflector', state.tone, '', '', [progress(state.phase), reasons ? `lists: ${reasons}` : 'nothing listed yet',
    informer.parts.length > 1 ? plural(informer.parts.length, 'namespace', 'namespaces') : ''], true);
  const figure = $('stage-reflector').querySelector('.figure');
  figure.dataset.text = '';
  let words = figure.querySelector('.state');
  if (!words) { words = make('span'); figure.replaceChildren(words); }
  putClass(words, `state ${state.tone}`);
  put(words, state.words);
  stage('stage-queue', informer.queued > 0 ? 'busy' : 'good', number(informer.queued), 'waiting', [`${number(counts.events)} events so far`]);
  stage('stage-store', informer.synced ? 'good' : 'busy', number(informer.objects), informer.objects === 1 ? 'object' : 'objects', [
    informer.version ? `version ${informer.version}` : 'not synced yet', informer.indexes.length ? `by ${informer.indexes.join(', ')}` : '',
    informer.undecodable.length ? `▲ ${informer.undecodable.length} could not be read` : '']);
  const backlog = sum(handlers, (handler) => handler.backlog);
  const folds = sum(handlers, (handler) => handler.folds);
  const lag = most(handlers, (handler) => handler.lag_ms);
  const behind = late(informer);
  const tone = handlers.length === 0 ? '' : folds || behind ? 'bad' : backlog > 1000 || lag >= 1000 ? 'busy' : 'good';
  stage('stage-handlers', tone, number(handlers.length), backlog ? `${short.format(backlog)} waiting` : '', [
    behind ? `▲ ${behind.name} is ${span(behind.lag_ms)} behind` : `lag ${span(lag)}`, folds ? `▲ folded ${number(folds)} times` : 'nothing folded']);
  const failing = queues.some((queue) => queue.last_error);
  stage('stage-work', queues.length === 0 ? '' : failing ? 'bad' : 'good', queues.length ? number(sum(queues, (queue) => queue.waiting)) : 'none', queues.length ? 'waiting' : '', queues.length ? [
    `${number(sum(queues, (queue) => queue.processing))} processing, ${number(sum(queues, (queue) => queue.delayed + queue.parked))} delayed`,
    `${number(sum(queues, (queue) => queue.worked))} done, ${number(sum(queues, (queue) => queue.failures))} failed`] : ['no work queues']);
}

const SVG = 'http://www.w3.org/2000/svg';
function shape(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function trend(id, points, write) {
  const figure = $(id);
  const now = points.at(-1);
  put(figure.querySelector('b'), now === undefined ? '–' : write(now));
  const svg = figure.querySelector('svg');
  const highest = Math.max(...points, Number.EPSILON);
  const name = figure.querySelector('figcaption').textContent;
  svg.setAttribute('aria-label', points.length ? `${name}: now ${write(now)}, maximum ${write(Math.max(...points))} in the last ${points.length} seconds` : `${name}: nothing yet`);
  // The newest value is at the right end.
  const place = (value, at) => `${(100 * (POINTS - points.length + at + 1) / POINTS).toFixed(2)},${(38 - 34 * value / highest).toFixed(2)}`;
  const path = points.map(place).join(' ');
  if (!svg.firstChild) svg.append(shape('path', { class: 'base', d: 'M0 38.5H100' }), shape('polygon', { class: 'area' }), shape('polyline', { class: 'stroke' }));
  const [, area, line] = svg.children;
  const first = path.split(' ')[0].split(',')[0] || '100';
  area.setAttribute('points', points.length ? `${first},38 ${path} 100,38` : '');
  line.setAttribute('points', path);
}

function drawTrends(informer) {
  const series = (informer && known.series.get(informer.id)) ?? { events: [], bytes: [], lag: [], work: [] };
  trend('trend-events', series.events, rate);
  trend('trend-bytes', series.bytes, bytes);
  trend('trend-lag', series.lag, span);
  trend('trend-work', series.work, number);
}

function drawDetails(informer) {
  putName($('details-title'), informer ? `Details of ${informer.id}` : 'Details');
  putName($('handlers-title'), informer ? `Handlers of ${informer.id}` : 'Handlers');
  const facts = [];
  if (informer) {
    const { resource, parts, counts, figures, undecodable } = informer;
    if (resource) facts.push(['collection', `${resource.plural}${resource.group ? `.${resource.group}` : ''} (${resource.kind}, ${resource.version})`]);
    facts.push(['scope', resource && !resource.namespaced ? 'the whole cluster' : parts.map((part) => part.namespace ?? 'all namespaces').join(', ')]);
    if (parts.length > 1) for (const part of parts) facts.push([part.namespace ?? 'all', `${(PHASES[part.phase.state] ?? PHASES.unknown)[1]} ${progress(part.phase)} ${part.phase.why ?? ''}`]);
    facts.push(['synced', informer.synced ? 'yes' : 'not yet'], ['fresh', informer.fresh ? 'yes' : 'no'], ['version', informer.version ?? 'none yet']);
    facts.push(['received', `${number(counts.events)} events, ${bytes(counts.wire_bytes)}`]);
    for (const [reason, count] of Object.entries(counts.lists)) facts.push([`lists, ${reason}`, number(count)]);
    for (const part of parts) if (part.last_error) facts.push(['last error', part.last_error]);
    if (counts.undecodable) facts.push(['could not be read', number(counts.undecodable)]);
    for (const bad of undecodable.slice(0, 10)) facts.push([bad.key, bad.why]);
    for (const [name, figure] of Object.entries(figures)) facts.push([name.replaceAll('_', ' '), number(figure)]);
  }
  const list = $('facts');
  while (list.children.length > facts.length * 2) list.lastChild.remove();
  while (list.children.length < facts.length * 2) list.append(make('dt'), make('dd'));
  facts.forEach(([name, value], at) => { putName(list.children[2 * at], name); putName(list.children[2 * at + 1], value); });
  drawFailures(informer);
  const handlers = informer?.handlers ?? [];
  const made = rows($('handlers'), handlers.map((handler) => handler.name), () => make('tr', {}, make('td'), cell('waiting'), cell('lag'), cell('folds')));
  handlers.forEach((handler, at) => {
    const [name, waiting, lag, folds] = made[at].cells;
    putName(name, handler.name); put(waiting, number(handler.backlog)); put(folds, number(handler.folds));
    const behind = handler.lag_ms >= FAR_BEHIND;
    put(lag, `${behind ? '▲ ' : ''}${span(handler.lag_ms)}`);
    lag.classList.toggle('late', behind);
  });
  $('no-handlers').hidden = handlers.length > 0;
  $('handlers').hidden = handlers.length === 0;
}

/** Lists the last failures, newest first. */
function drawFailures(informer) {
  const count = informer?.counts.failures ?? 0;
  const recent = [...(informer?.recent_failures ?? [])].reverse();
  $('failures').hidden = count === 0;
  put($('failures').firstElementChild, `${plural(count, 'failure', 'failures')}${count > recent.length ? `, the last ${recent.length}` : ''}`);
  const list = $('failure-list');
  while (list.children.length > recent.length) list.lastChild.remove();
  while (list.children.length < recent.length) list.append(make('li', {}, make('time'), make('span', { class: 'why' })));
  recent.forEach((failure, at) => { put(list.children[at].firstChild, clock(failure.at_ms)); put(list.children[at].lastChild, failure.why); });
}

function openFailures() {
  $('failures').open = true;
  $('failures').scrollIntoView({ block: 'nearest' });
  $('failures').firstElementChild.focus();
}

function choose(id) {
  if (id === known.chosen) return;
  known.chosen = id;
  history.replaceState(null, '', `#${encodeURIComponent(id)}`);
  objects.reset();
  draw();
}

// The objects of the selected informer.

async function ask(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  const answer = await fetch(`${base}${path}${query ? `?${query}` : ''}`, { headers: { accept: 'application/json' } }).catch(() => null);
  if (!answer) return { failure: NOT_REACHED, hint: '' };
  const body = await answer.json().catch(() => ({ error: `the response cannot be read (${answer.status})` }));
  return answer.ok ? body : { failure: body.error ?? `refused (${answer.status})`, hint: body.hint ?? '' };
}

const objects = {
  of: null, offered: null, key: null, next: null, tab: 'changes', timer: 0, turn: 0,
  // The list of keys: its size, its time, whether an index selects it, and the changes since then. `missed` is true if
  // some of them were too fast to be counted.
  listed: { total: 0, at: 0, searched: false, changes: 0, missed: false },

  reset() {
    Object.assign(this, { of: null, offered: null, key: null, next: null });
    this.listed.at = 0;
    put($('found'), '');
    for (const id of ['value', 'prefix']) $(id).value = '';
    $('keys').replaceChildren();
    $('object').hidden = true;
    $('nothing-shown').hidden = false;
  },

  /** Lists the keys, and again after the informer has synced or got an index. */
  offer(informer) {
    if (!informer) return;
    // The first list adds objects, and the program may add an index later.
    const offered = JSON.stringify([informer.id, informer.synced, informer.indexes]);
    if (this.offered === offered) return;
    const before = this.of === informer.id ? $('index').value : '';
    Object.assign(this, { of: informer.id, offered });
    $('index').replaceChildren(make('option', { value: '', text: 'all objects' }), ...informer.indexes.map((name) => make('option', { value: name, text: `by ${name}` })));
    putName($('browser-title'), `Objects of ${informer.id}`);
    // An index of the program is more useful than the index of namespaces.
    $('index').value = before || (informer.indexes.find((name) => name !== 'namespace') ?? '');
    this.values();
    this.list();
  },

  path(what) { return `api/informers/${encodeURIComponent(this.of)}/${what}`; },

  async values() {
    const index = $('index').value;
    $('value').disabled = !index;
    $('value').placeholder = index ? 'choose or type' : 'choose an index first';
    if (!index) { $('values').replaceChildren(); return; }
    const found = await ask(this.path('values'), { index, limit: 500 });
    $('values').replaceChildren(...(found.values ?? []).map((value) => make('option', { value })));
  },

  async list(after) {
    const turn = ++this.turn;
    const parameters = { limit: 100, prefix: $('prefix').value.trim() };
    if ($('index').value && $('value').value) Object.assign(parameters, { index: $('index').value, value: $('value').value });
    if (after) parameters.after = after;
    const found = await ask(this.path('keys'), parameters);
    if (turn !== this.turn) return; // The input has changed since.
    const made = (found.keys ?? []).map((key) => make('li', {}, make('button', { type: 'button', 'data-key': key, onclick: () => this.show(key) }, ...pieces(key))));
    if (!after) $('keys').replaceChildren();
    $('keys').append(...made);
    if (found.failure || !$('keys').children.length) $('keys').replaceChildren(make('li', { class: 'empty', text: found.failure ?? 'No objects match.' }));
    this.listed = { total: found.total, at: found.failure ? 0 : Date.now(), searched: 'index' in parameters, changes: 0, missed: false };
    if (found.failure) put($('found'), ''); else this.drawFound();
    this.next = found.next ?? null;
    $('more').hidden = !this.next;
    this.mark();
  },

  /** Says how old the list is: it is not updated while the user reads it. */
  drawFound() {
    const { total, at, changes, missed } = this.listed;
    const since = missed ? ', changed since' : changes ? `, ${plural(changes, 'change', 'changes')} since` : '';
    put($('found'), `${plural(total, 'object', 'objects')} as of ${clock(at)}${since}`);
  },

  /** Counts the changes that may change the list of keys. */
  changed(changes, dropped) {
    const moves = (change) => change.kind === 'added' || change.kind === 'deleted' || (this.listed.searched && change.kind === 'updated');
    const moved = changes.filter((change) => change.informer === this.of && moves(change)).length;
    if (!this.listed.at || (!moved && !dropped)) return;
    this.listed.changes += moved;
    this.listed.missed ||= dropped > 0;
    this.drawFound();
  },

  later() { clearTimeout(this.timer); this.timer = setTimeout(() => this.list(), 200); },

  mark() { for (const button of $('keys').querySelectorAll('button')) button.setAttribute('aria-current', String(button.dataset.key === this.key)); },

  async show(key) {
    this.key = key;
    this.mark();
    putName($('key'), key);
    $('object').hidden = false;
    $('nothing-shown').hidden = true;
    await this.refresh();
  },

  async refresh() {
    const { key, of } = this;
    if (!key) return;
    const [object, history] = await Promise.all([ask(this.path('object'), { key }), ask(this.path('history'), { key })]);
    if (key !== this.key || of !== this.of) return;
    $('object-note').hidden = !object.failure;
    put($('object-note'), object.failure ?? '');
    this.drawJson(object.failure ? null : object.object);
    this.drawChanges(history);
    this.choose(this.tab);
  },

  choose(tab) {
    this.tab = tab;
    for (const name of ['changes', 'json']) {
      $(`tab-${name}`).setAttribute('aria-pressed', String(name === tab));
      $(name).hidden = name !== tab;
    }
  },

  drawJson(object) {
    const text = object === null ? '' : JSON.stringify(object, null, 2);
    const pieces = [];
    let end = 0;
    for (const found of text.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\b/g)) {
      pieces.push(text.slice(end, found.index), make('span', { class: found[2] ? 'k' : found[1] ? 's' : 'n', text: found[0] }));
      end = found.index + found[0].length;
    }
    $('json').replaceChildren(...pieces, text.slice(end));
  },

  drawChanges(history) {
    if (history.failure) { $('changes').replaceChildren(make('li', { class: 'field', text: history.failure })); return; }
    const value = (sign, content) => make(sign, { text: typeof content === 'string' ? content : JSON.stringify(content, null, 1) });
    const items = history.states.filter((state) => state.kind !== 'known').reverse().map((state) => {
      const fields = state.changes.map((change) => make('div', { class: 'field' }, make('div', { text: change.path }),
        ...(change.old === null ? [] : [value('del', change.old)]), ...(change.new === null ? [] : [value('ins', change.new)])));
      if (state.more) fields.push(make('div', { class: 'field', text: `and ${plural(state.more, 'field', 'fields')} more` }));
      if (!fields.length && state.kind === 'updated') fields.push(make('div', { class: 'field quiet', text: state.compared ? 'only the resource version' : 'the changes cannot be shown' }));
      return make('li', {}, make('div', { class: 'when' }, make('span', { class: `kind ${state.kind}`, text: state.kind }),
        make('span', { text: clock(state.at_ms) }), make('span', { class: 'quiet', text: `version ${state.version}` })), ...fields);
    });
    if (!items.length) items.push(make('li', { class: 'field quiet', text: `No change in the last ${span(history.recorded_ms)} of recording.` }));
    $('changes').replaceChildren(...items);
  },
};

// The list of events.

const tail = {
  paused: false, timer: 0,

  take({ changes, dropped }) {
    objects.changed(changes, dropped);
    if (changes.some((change) => change.informer === objects.of && change.key === objects.key)) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => objects.refresh(), 150);
    }
    if (this.paused) return;
    const only = $('tail-of').value;
    const list = $('tail');
    // A reader who has scrolled down keeps the position.
    const [height, top] = [list.scrollHeight, list.scrollTop];
    if (dropped) list.prepend(make('li', {}, make('time', { text: '' }), make('span', { class: 'kind dropped', text: 'dropped' }), make('span', { class: 'what', text: `${plural(dropped, 'event', 'events')} arrived too fast to be shown` })));
    for (const change of changes) {
      if (only && change.informer !== only) continue;
      const fields = change.fields.join(', ') + (change.more ? ` and ${change.more} more` : '');
      list.prepend(make('li', {}, make('time', { text: clock(change.at_ms) }), make('span', { class: `kind ${change.kind}`, text: change.kind }),
        make('span', { class: 'what' }, make('span', { text: `${change.informer} ` }), make('button', { type: 'button', onclick: () => this.open(change) }, ...pieces(change.key)), ' ', make('span', { text: fields }))));
    }
    while (list.children.length > TAIL) list.lastChild.remove();
    if (top > 0) list.scrollTop = top + list.scrollHeight - height;
    $('no-tail').hidden = list.children.length > 0;
  },

  async open(change) {
    choose(change.informer);
    objects.offer(chosen());
    await objects.show(change.key);
    $('browser').scrollIntoView({ block: 'start' });
    $('browser').focus({ preventScroll: true });
  },
};

// The connection to the program.

const connection = {
  lost: true, missed: false,

  says(tone, words) {
    if (this.lost) return;
    putClass($('overall'), `state badge ${tone}`);
    put($('overall'), words);
  },

  open() {
    const source = new EventSource(`${base}api/stream`);
    source.addEventListener('health', (event) => {
      if (this.missed) put($('announce'), 'program reached again');
      Object.assign(this, { lost: false, missed: false });
      learn(JSON.parse(event.data));
      draw();
    });
    source.addEventListener('changes', (event) => tail.take(JSON.parse(event.data)));
    source.onerror = () => {
      Object.assign(this, { lost: true, missed: true });
      putClass($('overall'), 'state badge over');
      for (const id of ['overall', 'announce']) put($(id), NOT_REACHED);
      // After an HTTP error the browser does not reconnect by itself.
      if (source.readyState === EventSource.CLOSED) { source.close(); setTimeout(() => this.open(), 3000); }
    };
  },
};

// The theme: light, dark, or that of the system.

const theme = {
  names: ['system', 'light', 'dark'],
  now: 'system',

  set(name) {
    this.now = this.names.includes(name) ? name : 'system';
    if (this.now === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.now;
    put($('theme'), `Theme: ${this.now}`);
    try { localStorage.setItem('theme', this.now); } catch { /* Then only this page has it. */ }
  },
};

let remembered = null;
try { remembered = localStorage.getItem('theme'); } catch { /* Not allowed here. */ }
theme.set(remembered);
try { known.chosen = decodeURIComponent(location.hash.slice(1)) || null; } catch { /* Not an informer's id. */ }
$('theme').addEventListener('click', () => theme.set(theme.names[(theme.names.indexOf(theme.now) + 1) % theme.names.length]));
$('choose').addEventListener('change', (event) => choose(event.target.value));
$('finder').addEventListener('submit', (event) => { event.preventDefault(); objects.list(); });
$('index').addEventListener('change', () => { $('value').value = ''; objects.values(); objects.list(); });
$('value').addEventListener('input', () => objects.later());
$('prefix').addEventListener('input', () => objects.later());
$('refresh').addEventListener('click', () => { objects.values(); objects.list(); objects.refresh(); });
$('open-failures').addEventListener('click', openFailures);
$('more').addEventListener('click', () => objects.list(objects.next));
$('tab-changes').addEventListener('click', () => objects.choose('changes'));
$('tab-json').addEventListener('click', () => objects.choose('json'));
$('tail-of').addEventListener('change', () => { $('tail').replaceChildren(); $('no-tail').hidden = false; });
$('pause').addEventListener('click', () => {
  tail.paused = !tail.paused;
  $('pause').setAttribute('aria-pressed', String(tail.paused));
});
document.addEventListener('keydown', (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); $('prefix').focus(); }
});
connection.open();
