// Load client for JavaScript queues: node load.mjs LIB ADDR enqueue|e2e CONC SECS BODY WINDOW
// Prints "begin" and "end" around its measured window, then {Ops, Secs, Lat (ns)} as JSON.
const [lib, addr, kind, concArg, secsArg, bodyArg, windowArg] = process.argv.slice(2);
const conc = +concArg, secs = +secsArg, window = +windowArg;
const pad = 'x'.repeat(Math.max(1, +bodyArg - 40));
const now = () => process.hrtime.bigint();
const job = () => ({ t: String(now()), p: pad });
const sleep = ms => new Promise(r => setTimeout(r, ms));

// Each library gives: add(data), consume(n, done), reset(), close().
const libs = {
  async bullmq() {
    const { Queue, Worker } = await import('bullmq');
    const [host, port] = addr.split(':');
    const connection = { host, port: +port, maxRetriesPerRequest: null };
    const q = new Queue('q', { connection, defaultJobOptions: { removeOnComplete: 1000 } });
    let w;
    return {
      reset: () => q.obliterate({ force: true }),
      add: d => q.add('j', d),
      consume(n, done) {
        w = new Worker('q', async () => 'ok', { connection, concurrency: n });
        w.on('completed', j => done(j.data)); // after the completion script answered
      },
      async close() { await w?.close(true); await q.close(); },
    };
  },
  async 'pg-boss'() {
    const { default: PgBoss } = await import('pg-boss');
    const db = new (await import('pg')).default.Pool({ connectionString: addr, max: 1 });
    const boss = new PgBoss({ connectionString: addr, max: 64, supervise: false, schedule: false });
    boss.on('error', e => console.error(String(e)));
    await boss.start();
    await boss.createQueue('q');
    let stop = false, loops = [];
    return {
      reset: () => db.query('TRUNCATE pgboss.job'), // purgeQueue leaves dead rows, which slow fetch
      add: d => boss.send('q', d),
      consume(n, done) { // fetch and complete by hand: work() polls every half second at best
        for (let i = 0; i < n; i++) loops.push((async () => {
          while (!stop) {
            const jobs = await boss.fetch('q', { batchSize: 1 });
            if (!jobs?.length) { await sleep(2); continue; }
            await boss.complete('q', jobs[0].id);
            done(jobs[0].data);
          }
        })());
      },
      async close() { stop = true; await Promise.all(loops); await boss.stop({ graceful: false, wait: false }); },
    };
  },
};

const q = await libs[lib]();
await q.reset();
const lat = [];
let ops = 0, t0 = 0n;
const begin = () => { console.log('begin'); t0 = now(); };
let took = 0;
const end = () => {
  took = Number(now() - t0) / 1e9;
  console.log('end');
};
if (kind === 'enqueue') {
  const load = (until, count) => Promise.all(Array.from({ length: conc }, async () => {
    for (let t; (t = now()) < until;) { await q.add(job()); if (count) { lat.push(Number(now() - t)); ops++; } }
  }));
  const inSecs = s => now() + BigInt(Math.round(s * 1e9));
  await load(inSecs(1), false); // opens the connections, warms the compiler
  begin();
  await load(inSecs(secs), true);
  end();
} else {
  let counting = false, stop = false, free = window, wake = [];
  await q.consume(conc, d => {
    if (counting) { lat.push(Number(now() - BigInt(d.t))); ops++; }
    free++; wake.shift()?.();
  });
  const producers = Array.from({ length: 16 }, async () => {
    while (!stop) {
      if (free <= 0) { await new Promise(r => { wake.push(r); setTimeout(r, 500); }); continue; }
      free--; await q.add(job());
    }
  });
  await sleep(1000);
  counting = true;
  begin();
  await sleep(secs * 1000);
  end();
  counting = false; stop = true;
  await Promise.all(producers);
}
await Promise.race([q.close(), sleep(3000)]);
process.stdout.write(JSON.stringify({ Ops: ops, Secs: took, Lat: lat }), () => process.exit(0));
