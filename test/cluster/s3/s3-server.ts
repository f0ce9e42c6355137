import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findJava } from '../../../src/node/java.js';
import { freePort } from '../free-port.js';
import { untilListening } from '../postgres-server.js';
import { copyJars } from '../server-jars.mjs';

/** A store like S3 for one test run: S3Proxy, which keeps its objects as files. */
export interface S3Server {
  /** Its buckets; each is a folder of objects. */
  readonly files: string;
  readonly origin: string;
  /** The environment of a client with all permissions. */
  readonly environment: Readonly<Record<string, string>>;
  remove(): Promise<void>;
}

/** Starts a store with some buckets. With `open` it checks no signature. */
export async function s3Server(buckets: readonly string[], { open = false } = {}): Promise<S3Server> {
  const { command } = await findJava({});
  const jars = await copyJars(join(import.meta.dirname, 'pom.xml'), { name: 's3' });
  const dir = await mkdtemp(join(tmpdir(), 'palimpsest-s3-'));
  const files = join(dir, 'files');
  for (const bucket of buckets) await mkdir(join(files, bucket), { recursive: true });
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const properties = {
    's3proxy.endpoint': origin,
    's3proxy.authorization': open ? 'none' : 'aws-v4',
    's3proxy.identity': 'the-key',
    's3proxy.credential': 'the+secret/of=it',
    'jclouds.provider': 'filesystem-nio2',
    'jclouds.filesystem.basedir': files,
  };
  const file = join(dir, 's3.properties');
  await writeFile(
    file,
    Object.entries(properties)
      .map(([key, value]) => `${key}=${value}\n`)
      .join(''),
  );
  const flags = ['-Xmx192m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-cp', join(jars.dir, '*')];
  const server = spawn(command, [...flags, 'org.gaul.s3proxy.Main', '--properties', file], {
    stdio: 'ignore',
    cwd: dir,
  });
  const ended = once(server, 'exit');
  await untilListening(port, server);
  return {
    files,
    origin,
    environment: {
      AWS_ENDPOINT_URL: origin,
      AWS_ACCESS_KEY_ID: 'the-key',
      AWS_SECRET_ACCESS_KEY: 'the+secret/of=it',
      AWS_REGION: 'eu-somewhere-1',
    },
    remove: async () => {
      server.kill('SIGKILL');
      await ended;
      await Promise.all([dir, jars.dir].map((one) => rm(one, { recursive: true, force: true })));
    },
  };
}
