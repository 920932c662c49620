// Plays `session.js` with UpGrade's client libraries, in Node and in Chromium, on the embedded server in both
// of its dialects, and may record what went over the wire.
//
//   node play.mjs UPGRADE_AGENT LIBRARIES CHROMIUM [RECORD_TO]
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const [agent, libraries, chromium, recordTo] = process.argv.slice(2).map((path) => resolve(path));
const require = createRequire(join(libraries, 'package.json'));
const here = new URL('.', import.meta.url).pathname;
const fixtures = join(here, '../fixtures');
const { session } = require(join(here, 'session.js'));
const { chromium: browsers } = require('playwright-core');

const HEADERS = ['origin', 'access-control-request-method', 'access-control-request-headers', 'content-type', 'client-source',
  'currentretry', 'session-id', 'url', 'user-id'];
const recorded = new Map();
let failures = 0;

const browser = await browsers.launch({
  executablePath: chromium,
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
for (const dialect of ['6.5', '6.2']) {
  const server = await simulator(dialect);
  for (const version of ['6.5', '6.2', '5.1']) {
    for (const place of ['node', 'browser']) {
      const name = `the ${version} client in ${place} on ${dialect}`;
      try {
        const told = await play(server.host, { dialect, version, place });
        console.log(`${name}: kept ${told.length} promises`);
      } catch (error) {
        failures += 1;
        console.log(`${name}: FAILED: ${error.message}`);
      }
    }
  }
  server.process.kill();
}
await browser.close();
if (recordTo && failures === 0) writeFileSync(recordTo, lines([...recorded.values()]));
process.exit(failures === 0 ? 0 : 1);

// The embedded server as its own process, and the address that client libraries want.
async function simulator(dialect) {
  const child = spawn(agent, ['simulator', '--port', '0', '--dialect', dialect, '--seed', '7'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const url = await new Promise((found, failed) => {
    child.stdout.once('data', (line) => found(String(line).trim()));
    child.once('exit', (code) => failed(new Error(`the simulator ended with ${code}`)));
  });
  return { host: url.replace(/\/api$/, ''), process: child };
}

// One client in one place, behind a proxy that takes down what is said.
async function play(host, { dialect, version, place }) {
  const calls = [];
  const proxy = await listen((request, answer) => forward(host, request, answer, calls));
  const site = `site ${version} ${place}`;
  const what = await experiments(host, dialect, site);
  const options = { host: proxy.url, version, student: `ada-${version}-${place}`, site, ...what };
  try {
    const library = join(libraries, `client-${version}-${place}.js`);
    const told = place === 'node' ? await session(require(library).default, options) : await inPage(library, options);
    record({ version, place, site, calls }, proxy.url);
    return told;
  } finally {
    proxy.close();
  }
}

// The clients do not know which server they speak to, so they say the same to both.
function record(play, host) {
  // Ports and the id of a session that nobody gave differ from play to play.
  const text = JSON.stringify(play).replaceAll(host, 'http://localhost').replace(/"origin":"[^"]*"/g, '"origin":"http://localhost"')
    .replace(/"session-id":"[0-9a-f-]{36}"/g, '"session-id":"made-up"');
  const key = `${play.version} ${play.place}`;
  if (recorded.has(key) && JSON.stringify(recorded.get(key)) !== text) throw new Error('it said something else than to the other server');
  recorded.set(key, JSON.parse(text));
}

// A call on a line.
function lines(plays) {
  const play = ({ calls, ...rest }) => `{ ${JSON.stringify(rest).slice(1, -1)}, "calls": [\n${calls.map((call) => JSON.stringify(call)).join(',\n')}\n] }`;
  return `[\n${plays.map(play).join(',\n')}\n]\n`;
}

async function inPage(library, options) {
  const origin = await listen((_, answer) => answer.setHeader('content-type', 'text/html').end('<!doctype html><title>play</title>'));
  const page = await browser.newPage();
  try {
    await page.goto(origin.url);
    await page.addScriptTag({ path: library });
    await page.addScriptTag({ path: join(here, 'session.js') });
    return await page.evaluate((options) => session(UpGrade.default, options), options);
  } finally {
    await page.close();
    origin.close();
  }
}

// A simple and a factorial experiment at the site, both running.
async function experiments(host, dialect, site) {
  const read = (name) => JSON.parse(readFileSync(join(fixtures, `v65/${name}.json`))).request;
  const segments = (all) => ({ segment: { individualForSegment: [], groupForSegment: all ? [{ type: 'All', groupId: 'All' }] : [], subSegments: [], type: 'private' } });
  const start = async (body, target) => {
    body = JSON.parse(renewed(JSON.stringify(body)));
    body.name = `${site} ${target}`;
    body.partitions[0] = { ...body.partitions[0], site, target };
    if (dialect === '6.2') {
      body.experimentSegmentInclusion = segments(true);
      body.experimentSegmentExclusion = segments(false);
    }
    const made = await admin(host, 'POST', '/api/experiments', body);
    await admin(host, 'POST', '/api/experiments/state', { experimentId: made.id, state: dialect === '6.2' ? 'enrolling' : 'running' });
    return body;
  };
  const plain = await start(read('create_with_payloads'), 'plain');
  const fact = await start(read('create_factorial'), 'fact');
  return {
    conditions: plain.conditions.map((one) => one.conditionCode),
    factors: Object.fromEntries(fact.factors.map((factor) => [factor.name, factor.levels.map((level) => level.name)])),
  };
}

// The text with new ids in the place of its ids, the same for the same.
function renewed(text) {
  const ids = new Map();
  return text.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => {
    if (!ids.has(id)) ids.set(id, crypto.randomUUID());
    return ids.get(id);
  });
}

async function admin(host, method, path, body) {
  const answer = await fetch(host + path, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

function forward(host, request, answer, calls) {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const body = Buffer.concat(parts);
    const headers = Object.fromEntries(HEADERS.filter((name) => name in request.headers).map((name) => [name, request.headers[name]]));
    const call = { method: request.method, path: request.url, headers, body: body.length ? said(JSON.parse(body)) : null };
    calls.push(call);
    const onward = http.request(host + request.url, { method: request.method, headers: request.headers }, (reply) => {
      call.status = reply.statusCode;
      answer.writeHead(reply.statusCode, reply.rawHeaders);
      reply.pipe(answer);
    });
    onward.end(body);
  });
}

// A mark gives an assignment back: what the server made up for it, and the condition that was drawn, are the play's own.
function said(body) {
  const { data } = body;
  if (data) body.data = { site: data.site, target: data.target, given: data.assignedCondition.conditionCode !== null };
  return body;
}

async function listen(handler) {
  const server = http.createServer(handler);
  await new Promise((done) => server.listen(0, 'localhost', done));
  return { url: `http://localhost:${server.address().port}`, close: () => server.closeAllConnections() ?? server.close() };
}
