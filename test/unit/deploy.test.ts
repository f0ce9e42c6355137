import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';

const repository = join(import.meta.dirname, '..', '..');
const fileAt = (...path: readonly string[]): Promise<string> => readFile(join(repository, ...path), 'utf8');

interface Pod {
  readonly automountServiceAccountToken: boolean;
  readonly securityContext: {
    readonly runAsNonRoot: boolean;
    readonly runAsUser: number;
    readonly seccompProfile: { readonly type: string };
  };
  readonly containers: readonly [
    { readonly name: string; readonly securityContext: object; readonly resources: { readonly limits: object } },
  ];
}

interface Policy {
  readonly podSelector: object;
  readonly ingress?: readonly { readonly from: readonly object[]; readonly ports: readonly object[] }[];
  readonly egress?: readonly { readonly to: readonly object[] }[];
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: Policy & { readonly template: { readonly spec: Pod } };
}

const manifests = async (): Promise<readonly Manifest[]> =>
  parseAllDocuments(await fileAt('deploy', 'kubernetes.yml')).map((one) => one.toJS() as Manifest);

describe('permissions in the container files', () => {
  test.each(['postgres', 'node', 'proxy'])(
    'give the pods of %s no root, no capabilities, a read-only filesystem and limits',
    async (name) => {
      const found = (await manifests()).find(
        ({ kind, metadata }) => /^(?:StatefulSet|Deployment)$/.test(kind) && metadata.name === name,
      );
      const pod = found?.spec.template.spec;
      expect(pod).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      });
      expect(pod?.securityContext.runAsUser).toBeGreaterThan(0);
      const [container] = pod?.containers ?? [];
      expect(container).toMatchObject({
        securityContext: {
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
        },
        resources: { limits: { memory: expect.any(String), cpu: expect.any(String) } },
      });
    },
  );

  test('let each pod receive only from its predecessor, and reach only the next pod and cluster DNS', async () => {
    const policies = new Map(
      (await manifests()).flatMap(({ kind, metadata, spec }) =>
        kind === 'NetworkPolicy' ? [[metadata.name, spec]] : [],
      ),
    );
    const app = (name: string) => ({ podSelector: { matchLabels: { app: name } } });
    expect(policies.get('palimpsest')).toMatchObject({
      podSelector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['postgres', 'node', 'proxy'] }] },
      policyTypes: ['Ingress', 'Egress'],
      egress: [{ ports: [{ port: 53 }, { port: 53 }] }],
    });
    expect(policies.get('palimpsest')).not.toHaveProperty('ingress');
    expect(policies.get('postgres')).toMatchObject({
      ...app('postgres'),
      ingress: [{ from: [app('node')], ports: [{ port: 5432 }] }],
    });
    expect(policies.get('node')).toMatchObject({
      ...app('node'),
      ingress: [{ from: [app('proxy')], ports: [{ port: 7391 }] }],
      egress: [{ to: [app('postgres')] }],
    });
    const client = { podSelector: { matchLabels: { 'palimpsest-client': 'true' } } };
    expect(policies.get('proxy')).toMatchObject({
      ...app('proxy'),
      ingress: [{ from: [client], ports: [{ port: 7390 }] }],
      egress: [{ to: [app('node')] }],
    });
    expect(policies.size).toBe(4);
  });

  test('give compose services limits and no unneeded rights', async () => {
    for (const file of [['docker-compose.yml'], ['deploy', 'compose.yml']]) {
      const { services } = parse(await fileAt(...file), { merge: true }) as {
        readonly services: Readonly<Record<string, object>>;
      };
      for (const service of Object.values(services))
        expect(service).toMatchObject({
          cap_drop: ['ALL'],
          security_opt: ['no-new-privileges:true'],
          mem_limit: expect.any(String),
          pids_limit: expect.any(Number),
        });
    }
  });

  test('end every containerised node when its writes fail, so that it restarts', async () => {
    const [own, shared] = [await fileAt('docker-compose.yml'), await fileAt('deploy', 'compose.yml')];
    const command = /^CMD (\[.*\])$/m.exec(await fileAt('xtdb', 'Dockerfile'))?.[1] ?? '[]';
    expect(JSON.parse(command)).toContain('--exit-when-failed');
    expect(parse(own, { merge: true }).services.socket.command).toContain('--exit-when-failed');
    expect(parse(own, { merge: true }).services.xtdb).not.toHaveProperty('command');
    for (const name of ['node-a', 'node-b'])
      expect(parse(shared, { merge: true }).services[name].command).toContain('--exit-when-failed');
  });

  test('let the proxy refuse foreign host names before it contacts a node', async () => {
    const text = await fileAt('deploy', 'haproxy.cfg');
    const refusal = text.indexOf('http-request deny status 421 unless is-ours');
    expect(text).toMatch(/acl is-ours req\.hdr\(host\),host_only,lower -m str "\$\{PROXY_HOSTS\[\*\]\}"/);
    expect(refusal).toBeGreaterThan(text.indexOf('frontend clients'));
    expect(refusal).toBeLessThan(text.indexOf('backend nodes'));
    expect(parse(await fileAt('deploy', 'compose.yml'), { merge: true }).services.proxy.environment).toHaveProperty(
      'PROXY_HOSTS',
    );
  });
});
