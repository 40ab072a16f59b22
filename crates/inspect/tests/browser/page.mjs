// Opens the live page in a real browser, for a program that runs informers, and checks its promises.
//
// node page.mjs --program PATH --demo PATH --chromium PATH [--screenshot FILE] [--pictures FOLDER]

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';

const { values: given } = parseArgs({ options: {
  program: { type: 'string' }, demo: { type: 'string' }, chromium: { type: 'string' }, screenshot: { type: 'string' }, pictures: { type: 'string' },
} });
const PATIENCE = 30_000;
const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];
const KEEPER = 'shop/keeper';
const LONG = 'validatingwebhookconfigurations.admissionregistration.k8s.io';
const INFORMERS = ['deployments.apps', 'namespaces', 'nodes', 'pods', 'secrets', LONG];

const started = [];

/** Starts the program, and returns its address and a function that sends it a command. */
async function program(...parameters) {
  const child = spawn(given.program, ['--for', '4m', ...parameters], { stdio: ['pipe', 'pipe', 'inherit'] });
  started.push(child);
  for await (const line of createInterface({ input: child.stdout })) return { url: line.trim(), say: (text) => child.stdin.write(`${text}\n`) };
  throw new Error('the program ended without an address');
}

/** Waits until a condition holds in the page. */
async function until(page, what, holds, argument) {
  try {
    await page.waitForFunction(holds, argument, { timeout: PATIENCE, polling: 50 });
  } catch (error) {
    throw new Error(`not so within ${PATIENCE / 1000} s: ${what} (${error.message.split('\n')[0]})`);
  }
  console.log(`  ok: ${what}`);
}

function check(what, holds, details = '') {
  assert.ok(holds, `${what} ${details}`);
  console.log(`  ok: ${what}`);
}

/** Records all requests and console errors of a page. */
function overhear(page, heard) {
  page.on('request', (request) => heard.requests.push(request.url()));
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) heard.complaints.push(message.text()); });
  page.on('pageerror', (error) => heard.complaints.push(String(error)));
}

const phase = (page, tone, words) => until(page, `pods are shown as ${words}`, ([tone, words]) => {
  const state = document.querySelector('#informers tr[data-key="pods"] .state');
  return state?.classList.contains(tone) && state.textContent === words && document.querySelector('#stage-reflector').classList.contains(tone)
    && document.querySelector('#stage-reflector .state').textContent === words;
}, [tone, words]);

async function shows(page) {
  await until(page, 'every informer is in the table', (informers) =>
    [...document.querySelectorAll('#informers tbody tr')].map((row) => row.dataset.key).join() === informers.join(), INFORMERS);
  await until(page, 'all of them watch', () => document.querySelector('#overall').textContent === 'all watching');
  await until(page, 'the pipeline has figures on each part', () => [...document.querySelectorAll('.stage')].every((stage) => /\d|contact|watching/.test(stage.textContent)));
  const came = await page.textContent('#stage-queue li');
  await until(page, 'counts move', (came) => document.querySelector('#stage-queue li').textContent !== came, came);
  await until(page, 'events are drawn over time', () => (document.querySelector('#trend-events .stroke')?.getAttribute('points') ?? '').split(' ').length >= 3);
  await until(page, 'events are listed one by one', () => document.querySelectorAll('#tail li').length >= 3);
  await until(page, 'the controller works', () => /[1-9]\d* done/.test(document.querySelector('#stage-work').textContent.replaceAll(',', '')));
}

async function findsAndCompares(page, say) {
  await page.click('#informers tr[data-key="pods"] button');
  await until(page, 'the index of nodes is offered', () => [...document.querySelectorAll('#index option')].some((option) => option.value === 'node'));
  await page.selectOption('#index', 'node');
  await until(page, 'its values are offered', () => [...document.querySelectorAll('#values option')].some((option) => option.value === 'node-1'));
  await page.fill('#value', 'node-1');
  await until(page, 'a pod is found by its node', (key) => [...document.querySelectorAll('#keys button')].some((button) => button.dataset.key === key), KEEPER);
  const total = await page.textContent('#found');
  await page.fill('#prefix', 'shop/k');
  await until(page, 'and by the beginning of its key', (key) => [...document.querySelectorAll('#keys button')].map((button) => button.dataset.key).join() === key, KEEPER);
  await page.fill('#prefix', '');
  await until(page, 'all of that node are shown again', (total) => Number.parseInt(document.querySelector('#found').textContent) > 1, total);
  await page.click(`#keys button[data-key="${KEEPER}"]`);
  await until(page, 'it is shown', (key) => document.querySelector('#key').textContent === key && !document.querySelector('#object').hidden, KEEPER);
  await page.click('#tab-json');
  await until(page, 'as JSON', () => document.querySelector('#json').textContent.includes('"image": "keeper:1"'));
  await page.click('#tab-changes');
  const touched = (times) => until(page, `change ${times} is shown as what it was and what it is`, (times) => {
    const fields = [...document.querySelectorAll('#changes .field')];
    return fields.some((field) => field.textContent.includes('touched') && field.querySelector('ins')?.textContent.includes(`time ${times}`)
      && (times === 1 || field.querySelector('del')?.textContent === `time ${times - 1}`));
  }, times);
  say(`touch ${KEEPER}`);
  await touched(1);
  say(`touch ${KEEPER}`);
  await touched(2);
}

async function survives(page, say) {
  await page.evaluate(() => {
    globalThis.heard = '';
    new MutationObserver(() => { globalThis.heard += document.querySelector('#announce').textContent; }).observe(document.querySelector('#announce'), { childList: true });
  });
  say('fail');
  await phase(page, 'bad', 'backing off');
  await until(page, 'the error is shown', () => document.querySelector('#informers tr[data-key="pods"] .why').textContent.includes('503'));
  await until(page, 'the source is drawn as cut off', () => document.querySelector('#stage-source').classList.contains('cut'));
  await until(page, 'a screen reader announces it', () => /pods is backing off/.test(globalThis.heard));
  await until(page, 'not by colour alone', () => getComputedStyle(document.querySelector('#stage-reflector .state'), '::before').content === '"▲"');
  await picture(page, 'fault');
  say('heal');
  await phase(page, 'good', 'watching');
  await until(page, 'both are in the list of state changes', () => {
    const changes = [...document.querySelectorAll('#log li')].map((item) => item.textContent).filter((text) => text.includes('pods'));
    return changes.some((text) => text.includes('→ backing off')) && changes[0].includes('→ watching');
  });
}

/** The list of failures opens by its number. */
async function showsFailures(page) {
  const count = await page.textContent('#open-failures');
  check('the number of failures is shown', /^[1-9]\d* failures?$/.test(count), count);
  await page.click('#open-failures');
  await until(page, 'it opens the last failures, with time and reason', () => document.querySelector('#failures').open
    && document.activeElement === document.querySelector('#failures summary')
    && [...document.querySelectorAll('#failure-list li')].some((item) => /^\d\d:\d\d:\d\d.*503/.test(item.textContent)));
  await picture(page, 'failures');
}

/** A handler that falls behind is a warning, and the list of objects says how old it is. */
async function warns(page, say) {
  const found = () => page.textContent('#found');
  await page.click('#refresh');
  await until(page, 'the list of objects has a time', () => /^\d+ objects? as of \d\d:\d\d:\d\d/.test(document.querySelector('#found').textContent));
  say('hold');
  await until(page, 'a handler that is far behind turns its stage to a warning', () => document.querySelector('#stage-handlers').classList.contains('bad')
    && /▲ reporter is .* behind/.test(document.querySelector('#stage-handlers').textContent));
  await until(page, 'and is named at the top and in its table', () => document.querySelector('#overall').textContent === 'pods: handler reporter is far behind'
    && document.querySelector('#handlers tr[data-key="reporter"] .late')?.textContent.startsWith('▲'));
  await until(page, 'changes since the list are counted', () => /, (\d+ changes?|changed) since$/.test(document.querySelector('#found').textContent));
  await picture(page, 'behind');
  say('release');
  await until(page, 'once it has caught up, the warning ends', () => document.querySelector('#stage-handlers').classList.contains('good')
    && !document.querySelector('#handlers .late') && document.querySelector('#overall').textContent === 'all watching');
  await page.click('#refresh');
  await until(page, 'a refresh ends the count', () => !document.querySelector('#found').textContent.includes('since'));
  check('and keeps the time', /as of/.test(await found()));
}

/** Work queues show failing keys, reconcile times and the leader. */
async function showsWork(page, say) {
  await until(page, 'reconcile times are shown', () => /^placements: median time \d+ ms, longest \d+/.test(document.querySelector('#times li')?.textContent ?? ''));
  await until(page, 'the leader and its term are shown', () =>
    /^Lease shop\/placements: this program leads as inspected-1, its term is valid for \d/.test(document.querySelector('#elections li')?.textContent ?? ''));
  check('no key fails', await page.locator('#failing details').count() === 0);
  say(`spoil ${KEEPER}`);
  await until(page, 'a failing key is counted', () => document.querySelector('#failing summary')?.textContent === '▲ placements: 1 key fails');
  await page.click('#failing summary');
  await until(page, 'with its attempts, its next try and its error', (key) => {
    const row = document.querySelector(`#failing tr[data-key="${key}"]`);
    const [name, attempts, next] = row?.cells ?? [];
    return name?.querySelector('b').textContent === key && name.querySelector('.why').textContent === 'the pod is spoiled'
      && Number.parseInt(attempts.textContent) >= 3 && /^in \d/.test(next.textContent);
  }, KEEPER);
  await picture(page, 'failing');
  say(`touch ${KEEPER}`);
  await until(page, 'after a success it is not listed any more', () => document.querySelectorAll('#failing details').length === 0);
}

/** Checks that every table fits its panel, and that no name is broken inside a word. */
async function wholeWords(page, where) {
  const wide = await page.evaluate(() => [...document.querySelectorAll('table')].filter((table) => table.getClientRects().length).flatMap((table) => {
    const panel = table.closest('.panel');
    const over = table.getBoundingClientRect().right + Number.parseFloat(getComputedStyle(panel).paddingRight) - panel.getBoundingClientRect().right;
    return over > 1.5 ? [`${table.id || table.getAttribute('aria-label')} by ${over.toFixed(1)} pixels`] : [];
  }));
  check(`every table fits its panel ${where}`, wide.length === 0, wide.join('\n'));
  const broken = await page.evaluate(() => {
    const names = '#informers .pick, #handlers td:first-child, #queues b, #failing b, #keys button, #tail .what button, #key, h2, .stage li, #facts dt, #log b';
    const walker = (element) => document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    return [...document.querySelectorAll(names)].filter((element) => element.getClientRects().length).flatMap((element) => {
      const found = [];
      for (const texts = walker(element); texts.nextNode();) {
        for (const word of texts.currentNode.data.matchAll(/[^./_:\s-]+/g)) {
          const range = document.createRange();
          range.setStart(texts.currentNode, word.index);
          range.setEnd(texts.currentNode, word.index + word[0].length);
          if (new Set([...range.getClientRects()].map((line) => Math.round(line.top))).size > 1) found.push(`${word[0]} in ${element.textContent}`);
        }
      }
      return found;
    });
  });
  check(`no name is broken inside a word ${where}`, broken.length === 0, broken.slice(0, 10).join('\n'));
}

/** Walks through the page with the Tab key, and checks that the focus is visible. */
async function byKeyboard(page) {
  await page.evaluate(() => { document.activeElement?.blur(); scrollTo(0, 0); });
  await page.click('h1'); // Nothing that takes the focus: Tab begins at the top.
  const reached = [];
  for (let step = 0; step < 400; step += 1) {
    await page.keyboard.press('Tab');
    const now = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return null;
      const { outlineStyle, outlineWidth } = getComputedStyle(element);
      const where = element.closest('#keys') ? 'keys' : element.closest('#informers') ? 'informers' : element.closest('#tail .what') ? 'tail' : element.id;
      return { where, visible: outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2, name: element.textContent.slice(0, 40) };
    });
    if (!now) break;
    assert.ok(now.visible, `the focus cannot be seen on ${now.where} ${now.name}`);
    reached.push(now.where);
    if (now.where === 'pause') break;
  }
  for (const wanted of ['theme', 'choose', 'informers', 'refresh', 'index', 'value', 'prefix', 'keys', 'tab-changes', 'tab-json', 'changes', 'tail-of', 'pause'])
    assert.ok(reached.includes(wanted), `${wanted} is not reached by Tab: ${[...new Set(reached)].join(' ')}`);
  console.log(`  ok: everything is reached by Tab, and the focus can be seen (${reached.length} steps)`);
  await page.focus('#informers tr[data-key="nodes"] button');
  await page.keyboard.press('Enter');
  await until(page, 'an informer is chosen by Enter', () => document.querySelector('#browser-title').textContent === 'Objects of nodes'
    && document.activeElement === document.querySelector('#informers tr[data-key="nodes"] button'));
  await page.keyboard.press('/');
  await until(page, 'the slash leads to the filter', () => document.activeElement.id === 'prefix');
  await page.click('#informers tr[data-key="pods"] button');
}

async function byEar(page) {
  const unnamed = await page.evaluate(() => {
    const named = (element) => element.textContent.trim() || element.getAttribute('aria-label') || element.labels?.[0]?.textContent.trim() || element.getAttribute('aria-labelledby');
    return [...document.querySelectorAll('button, select, input, section, svg[role=img], table')].filter((element) => element.getClientRects().length && !named(element)).map((element) => element.outerHTML.slice(0, 90));
  });
  check('everything has a name', unnamed.length === 0, unnamed.join('\n'));
  for (const role of ['banner', 'main', 'contentinfo']) check(`there is a landmark for ${role}`, await page.getByRole(role).count() === 1);
  for (const name of ['Pipeline', 'Informers', 'State changes', 'Events']) check(`the part ${name} can be found`, await page.getByRole('region', { name, exact: true }).count() === 1);
}

/** Checks the contrast of text, as defined by the accessibility guidelines. */
async function contrasts(page, name) {
  const low = await page.evaluate(() => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
    const parts = (color, below) => { canvas.fillStyle = below; canvas.fillRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3); };
    const css = (rgb) => `rgb(${rgb.join(' ')})`;
    const light = (rgb) => { const [r, g, b] = rgb.map((part) => { const c = part / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const ground = (element) => { const chain = []; for (let at = element; at; at = at.parentElement) chain.unshift(getComputedStyle(at).backgroundColor); return chain.reduce((below, color) => css(parts(color, below)), 'white'); };
    return [...document.querySelectorAll('h1, h2, h3, th, td, li, dt, dd, p, button, label, .state, .why, .kind, time, small, figcaption, .field *, pre span')].filter((element) => element.getClientRects().length && element.textContent.trim()).flatMap((element) => {
      const below = ground(element);
      const [text, back] = [light(parts(getComputedStyle(element).color, below)), light(parts(below, 'white'))];
      const contrast = (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
      return contrast < 4.5 ? [`${element.tagName}.${element.className} ${contrast.toFixed(2)} "${element.textContent.trim().slice(0, 30)}"`] : [];
    });
  });
  check(`text stands out in ${name}`, low.length === 0, [...new Set(low)].slice(0, 10).join('\n'));
}

async function inBothLights(page) {
  const brightness = () => page.evaluate(() => { const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number); return (r + g + b) / 3; });
  await page.emulateMedia({ colorScheme: 'dark' });
  check('dark where the system is dark', await brightness() < 60);
  await contrasts(page, 'dark');
  await picture(page, 'dark');
  await page.emulateMedia({ colorScheme: 'light' });
  check('light where the system is light', await brightness() > 200);
  await contrasts(page, 'light');
  await picture(page, 'light');
  await page.click('#theme');
  await page.click('#theme');
  check('dark by choice', await page.textContent('#theme') === 'Theme: dark' && await brightness() < 60);
  await page.reload();
  await until(page, 'the choice is remembered', () => document.querySelector('#theme').textContent === 'Theme: dark');
  await page.click('#theme');
}

async function onAPhone(page) {
  await page.setViewportSize({ width: 390, height: 844 });
  await until(page, 'everything is there on a phone', (count) => document.querySelectorAll('#informers tbody tr').length === count && document.querySelectorAll('#keys button').length > 0, INFORMERS.length);
  const width = () => page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  const fits = async (what) => { const [scroll, inner] = await width(); check(`nothing has to be moved sideways ${what}`, scroll <= inner, `${scroll} > ${inner}`); };
  await fits('at 390 pixels');
  await page.selectOption('#choose', LONG);
  await until(page, 'the informer with the long name is chosen', (name) => document.querySelector('#browser-title').textContent === `Objects of ${name}`, LONG);
  await fits('with a long name');
  await wholeWords(page, 'on a phone');
  await page.selectOption('#choose', 'pods');
  await until(page, 'its objects are there again', () => document.querySelectorAll('#keys button').length > 0);
  await page.click('#keys button');
  await until(page, 'an object is shown', () => !document.querySelector('#object').hidden);
  await page.click('#tab-json');
  await until(page, 'as JSON', () => document.querySelector('#json').textContent.length > 100);
  await fits('with an object');
  for (const colorScheme of ['dark', 'light']) {
    await page.emulateMedia({ colorScheme });
    await picture(page, `phone-${colorScheme}`);
  }
  await page.setViewportSize({ width: 800, height: 900 });
  await fits('at 800 pixels');
  await wholeWords(page, 'at 800 pixels');
  await page.setViewportSize({ width: 1280, height: 900 });
  await fits('at 1280 pixels');
  await wholeWords(page, 'at 1280 pixels');
}

async function withToken(context, heard) {
  const { url } = await program('--token', 'open sesame & more');
  const page = await context.newPage();
  overhear(page, heard);
  // The browser logs the refusal as an error: this one is expected.
  const before = heard.complaints.length;
  await page.goto(url);
  heard.complaints.splice(before, heard.complaints.length, ...heard.complaints.slice(before).filter((text) => !text.includes('401')));
  await page.fill('#token', 'open sesame & more');
  await page.keyboard.press('Enter');
  await until(page, 'the token opens the page', (count) => document.querySelectorAll('#informers tbody tr').length === count, INFORMERS.length);
  check('and is not left in the address', page.url().split('#')[0].replace(/\?$/, '') === url, page.url());
  await page.close();
  return url;
}

/** Checks the page of `informer demo`, also after the demo has ended. */
async function ofTheDemo(context) {
  const child = spawn(given.demo, ['demo', '--plain', '--for', '1m'], { stdio: ['ignore', 'pipe', 'inherit'] });
  started.push(child);
  const url = await new Promise((found, failed) => {
    // Its output is read, so that the demo never blocks.
    createInterface({ input: child.stdout }).on('line', (line) => {
      const page = /live page: (http:\S+)/.exec(line);
      if (page) found(page[1]);
    });
    child.on('exit', () => failed(new Error('the demo ended without an address')));
  });
  const page = await context.newPage();
  await page.goto(url);
  await until(page, 'the informers of the demo are in the table', () =>
    ['pods', 'nodes', 'deployments.apps'].every((name) => document.querySelector(`#informers tr[data-key="${name}"]`)));
  await page.click('#informers tr[data-key="pods"] button');
  await until(page, 'its pods are listed', () => document.querySelectorAll('#keys button').length > 0);
  const came = await page.textContent('#stage-queue li');
  await until(page, 'its counts move', (came) => document.querySelector('#stage-queue li').textContent !== came, came);
  child.kill('SIGKILL');
  await until(page, 'the lost program is reported, also to screen readers', () => ['#overall', '#announce'].every((id) => document.querySelector(id).textContent === 'program not reached'));
  await page.click('#keys button');
  await until(page, 'a request reports the lost program', () => document.querySelector('#object-note').textContent === 'program not reached');
  await page.close();
}

async function picture(page, name) {
  if (given.pictures) await page.screenshot({ path: join(given.pictures, `${name}.png`), fullPage: true });
}

const folder = await mkdtemp(join(tmpdir(), 'live-page-'));
const heard = { requests: [], complaints: [] };
let browser;
const giveUp = setTimeout(() => { console.error('not done within four minutes'); process.exit(1); }, 240_000);
try {
  const { url, say } = await program();
  browser = await chromium.launchPersistentContext(folder, { executablePath: given.chromium, headless: true, args: FLAGS, viewport: { width: 1280, height: 900 } });
  const page = browser.pages()[0] ?? await browser.newPage();
  overhear(page, heard);
  await page.goto(url);
  await shows(page);
  await findsAndCompares(page, say);
  await survives(page, say);
  await showsFailures(page);
  await warns(page, say);
  await showsWork(page, say);
  await byEar(page);
  await byKeyboard(page);
  await inBothLights(page);
  await onAPhone(page);
  if (given.screenshot) await show(page, say);
  await page.goto('about:blank');
  await page.goto(`${url}#%`);
  await until(page, 'an address that cannot be read still shows an informer', (count) => document.querySelectorAll('#informers tbody tr').length === count
    && document.querySelector('#choose').value !== '', INFORMERS.length);
  await page.goto('about:blank');
  const urls = [url, await withToken(browser, heard)];
  const elsewhere = heard.requests.filter((request) => !/^(data|about):/.test(request) && !urls.some((own) => request.startsWith(own)));
  check('nothing is fetched from elsewhere', elsewhere.length === 0, elsewhere.join('\n'));
  await ofTheDemo(browser);
  check('there is no error in the console', heard.complaints.length === 0, heard.complaints.join('\n'));
  console.log('the live page passes all checks');
} catch (error) {
  console.error(`failed: ${error.message}`);
  if (heard.complaints.length) console.error(`the console said:\n${heard.complaints.join('\n')}`);
  process.exitCode = 1;
} finally {
  clearTimeout(giveUp);
  await browser?.close().catch(() => {});
  for (const child of started) child.kill();
  await rm(folder, { recursive: true, force: true }).catch(() => {});
}

/** Takes the picture for the documentation. */
async function show(page, say) {
  await page.setViewportSize({ width: 1280, height: 1180 });
  await page.emulateMedia({ colorScheme: 'light' });
  await page.goto(`${page.url().split('#')[0]}#pods`);
  await page.reload();
  await until(page, 'it has run for a while', () => (document.querySelector('#trend-events .stroke')?.getAttribute('points') ?? '').split(' ').length >= 24);
  await page.fill('#value', 'node-1');
  await until(page, 'the pods of a node are found', (key) => [...document.querySelectorAll('#keys button')].some((button) => button.dataset.key === key) && Number.parseInt(document.querySelector('#found').textContent) < 60, KEEPER);
  await page.click(`#keys button[data-key="${KEEPER}"]`);
  say(`touch ${KEEPER}`);
  await until(page, 'a change is shown', () => document.querySelectorAll('#changes ins').length > 0);
  await page.evaluate(() => { document.activeElement.blur(); scrollTo(0, 0); });
  await page.screenshot({ path: given.screenshot });
}
