import { expect, test } from '@jest/globals';
import { exportSettings } from '../../../src/host/telemetry.js';

const off = { traces: false, metrics: false, notices: [] };
const on = { traces: true, metrics: true, notices: [] };
const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.example:4318' };

test.each([
  ['nothing is said', {}, off],
  ['only a name and headers are given', { OTEL_SERVICE_NAME: 's', OTEL_EXPORTER_OTLP_HEADERS: 'a=b' }, off],
  ['an endpoint is named', endpoint, on],
  ['an endpoint is empty', { OTEL_EXPORTER_OTLP_ENDPOINT: '' }, off],
  [
    'an endpoint of one signal is named',
    { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c/v1/traces' },
    { ...off, traces: true },
  ],
  ['an exporter is named', { OTEL_METRICS_EXPORTER: 'otlp' }, { ...off, metrics: true }],
  ['one signal is switched off', { ...endpoint, OTEL_METRICS_EXPORTER: 'none' }, { ...on, metrics: false }],
  ['the SDK is switched off', { ...endpoint, OTEL_TRACES_EXPORTER: 'otlp', OTEL_SDK_DISABLED: 'TRUE' }, off],
])('when %s', (_when, env, expected) => {
  expect(exportSettings(env)).toEqual(expected);
});

test('reports unsupported settings and stays off', () => {
  const console = exportSettings({ ...endpoint, OTEL_TRACES_EXPORTER: 'console' });
  expect(console).toMatchObject({
    traces: false,
    metrics: true,
    notices: [expect.stringContaining('OTEL_TRACES_EXPORTER=console')],
  });
  const grpc = exportSettings({ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' });
  expect(grpc).toMatchObject({ traces: false, metrics: false });
  expect(grpc.notices).toHaveLength(2);
  for (const [variable, own] of [
    ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', { traces: false, metrics: true }],
    ['OTEL_EXPORTER_OTLP_METRICS_PROTOCOL', { traces: true, metrics: false }],
  ] as const) {
    expect(exportSettings({ ...endpoint, [variable]: 'grpc' })).toMatchObject({
      ...own,
      notices: [expect.stringContaining('grpc')],
    });
    // A signal's own protocol takes precedence.
    const general = { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', [variable]: 'http/protobuf' };
    expect(exportSettings({ ...endpoint, ...general })).toMatchObject({ traces: !own.traces, metrics: !own.metrics });
  }
});
