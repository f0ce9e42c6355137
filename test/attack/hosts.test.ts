import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import { attack } from '../support/attack.js';
import { CONFIGS, privateFolder, startFront } from '../support/front-process.js';
import { type AttackedServer, attackedServer } from './attacked-server.js';
import { exchange, statusesOf } from './raw-http.js';

let server: AttackedServer;
beforeAll(async () => {
  server = await attackedServer();
});
afterAll(() => server.close());

const QUIET_MS = 2_000;

/** Host names of a page, or of another machine. */
const hosts = (port: number): readonly string[] => [
  'evil.example',
  `evil.example:${port}`,
  `127.0.0.1.evil.example:${port}`,
  `localhost.evil.example:${port}`,
  `localhost@evil.example:${port}`,
  `evil.example@localhost.evil.example`,
  `127.0.0.1:${port}@evil.example`,
  `evil.example/127.0.0.1:${port}`,
  `evil.example#127.0.0.1`,
  `evil.example?localhost`,
  `evil.example\\localhost`,
  `localhost,evil.example`,
  `localhost evil.example`,
  'localhost.localdomain',
  'LOCALHOST.EVIL.EXAMPLE',
  'xn--localhost-.example',
  '10.0.0.1',
  '169.254.169.254',
  '192.168.0.1:80',
  '[::ffff:10.0.0.1]',
  '[fe80::1]',
  '0.0.0.0.evil.example',
  '',
  ' ',
  '%6cocalhost.evil.example',
  'ｌocalhost.evil.example',
];
const ORIGINS = [
  'https://evil.example',
  'http://127.0.0.1.evil.example',
  'http://localhost.evil.example',
  'http://localhost@evil.example',
  'null',
  'file://',
  'chrome-extension://abcdefgh',
  'http://evil.example#localhost',
  '*',
  'http://[::1].evil.example',
] as const;
const tokens = (token: string): readonly (readonly string[])[] => [
  [],
  ['Authorization: Bearer '],
  ['Authorization: Bearer'],
  ['Authorization: Bearer x'],
  [`Authorization: Bearer ${token}x`],
  [`Authorization: Bearer ${token.slice(0, -1)}`],
  [`Authorization: Bearer ${token.toUpperCase()}!`],
  [`Authorization: Bearer ${token.slice(1)}`],
  [`Authorization: Bearer ${token} x`],
  [`Authorization: Bearer x,Bearer ${token}`],
  [`Authorization: Basic ${Buffer.from(`:${token}`).toString('base64')}`],
  [`Authorization: ${token}`],
  [`Authorization: Token ${token}`],
  [`Proxy-Authorization: Bearer ${token}`],
  [`X-Authorization: Bearer ${token}`],
  [`Cookie: authorization=Bearer ${token}; token=${token}`],
  ['Authorization: Bearer null'],
  ['Authorization: Bearer undefined'],
  [`Authorization: Bearer "${token}"`],
  [`Authorization: Bearer ${encodeURIComponent(`${token}\0`)}`],
  ['Authorization: Bearer x', `Authorization: Bearer ${token}`],
];

const PATHS = [
  ['GET', '/mcp'],
  ['POST', '/mcp'],
  ['DELETE', '/mcp'],
  ['GET', '/v1/sessions'],
  ['POST', '/v1/sessions'],
  ['GET', '/v1/openapi.json'],
  ['GET', '/v1/log'],
  ['GET', '/v1/query?query=%7B%7D'],
  ['OPTIONS', '/v1/sessions'],
  ['GET', '/'],
  ['GET', '/nothing-here'],
  ['GET', '//v1/sessions'],
  ['GET', '/v1/../v1/sessions'],
  ['GET', '/v1/sessions?token=TOKEN&access_token=TOKEN'],
] as const;

interface Target {
  readonly port: number;
  readonly token: string;
  readonly paths: readonly (readonly [string, string])[];
}

function requests({ port, token, paths }: Target): readonly (readonly [string, string])[] {
  const good = { host: `127.0.0.1:${port}`, auth: [`Authorization: Bearer ${token}`] };
  const heads = [
    ...hosts(port).map((host) => [`Host: ${host}`, ...good.auth]),
    ...ORIGINS.map((origin) => [`Host: ${good.host}`, `Origin: ${origin}`]),
    ...tokens(token).map((auth) => [`Host: ${good.host}`, ...auth]),
    [...good.auth],
    [`Host: ${good.host}`, 'Host: evil.example', ...good.auth],
    ['Host: evil.example', `X-Forwarded-Host: ${good.host}`, `Forwarded: host=${good.host}`, ...good.auth],
  ];
  return paths.flatMap(([method, path]) =>
    heads.map((head): readonly [string, string] => {
      const line = `${method} ${path.replaceAll('TOKEN', token)} HTTP/1.1`;
      return [
        line,
        [
          line,
          ...head,
          'Connection: close',
          ...(method === 'POST' ? ['Content-Type: application/json', 'Content-Length: 2'] : []),
        ].join('\r\n'),
      ];
    }),
  );
}

attack(
  'hosts and tokens',
  async (tries) => {
    const against = async (target: Target): Promise<void> => {
      for (const [line, head] of tries.some(requests(target), 50)) {
        const body = line.startsWith('POST') ? '{}' : '';
        const text = await exchange(
          { port: target.port, host: '127.0.0.1' },
          Buffer.from(`${head}\r\n\r\n${body}`),
          QUIET_MS,
        );
        const [status = 0, ...more] = statusesOf(text);
        const said = text.includes(target.token) ? 'the answer holds the token' : undefined;
        const refused =
          [400, 401, 403].includes(status) && more.length === 0 ? undefined : `it answered ${text.slice(0, 200)}`;
        tries.tried(head.replaceAll(target.token, 'TOKEN').replaceAll('\r\n', ' | '), refused ?? said);
      }
    };
    const { serve } = server;
    await against({ port: Number(new URL(serve.url).port), token: serve.token ?? '', paths: PATHS });
    if (tries.size(0, 1) === 0) return;
    const { dir, remove } = await privateFolder();
    const token = 'correct-horse-battery-staple';
    await writeFile(join(dir, 'token'), token, { mode: 0o600 });
    const front = await startFront(['--config', CONFIGS.memory, '--port', '0', '--token-file', join(dir, 'token')]);
    try {
      const paths = ['/status', '/query', '/submit-tx', '/nothing-here', ''].flatMap((path) => [
        ['GET', `/_xtdb${path}`] as const,
        ['POST', `/_xtdb${path}`] as const,
      ]);
      await against({ port: Number(front.ready.port), token, paths });
    } finally {
      const { stdout, stderr } = await front.stop();
      tries.tried('the log of the front', (stdout + stderr).includes(token) ? 'it holds the token' : undefined);
      await remove();
    }
  },
  () => server,
);
