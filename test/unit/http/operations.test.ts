import { describe, expect, test } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import { REQUESTS as OWN_REQUESTS } from '../../../src/http/api-schemas.js';
import type { Operation } from '../../../src/http/http-contract.js';
import { openApiDocument } from '../../../src/http/openapi-document.js';
import { ALL_ANSWERS, ALL_OPERATIONS, ALL_QUESTIONS, ALL_REVIEW_ANSWERS, SERVED } from '../../support/contracts.js';

const REQUESTS = Object.assign({}, OWN_REQUESTS, ...SERVED.contracts.map(({ requests }) => requests));

type JsonMap = { readonly [key: string]: unknown };
const document = JSON.parse(JSON.stringify(openApiDocument('1.2.3', SERVED.contracts))) as JsonMap;

/** Yields every object schema that has its own fields, with its place. */
function objectsIn(value: unknown, place: string): readonly (readonly [string, JsonMap])[] {
  if (typeof value !== 'object' || value === null) return [];
  const inside = Object.entries(value).flatMap(([key, member]) => objectsIn(member, `${place}/${key}`));
  return 'properties' in value && 'type' in value ? [[place, value as JsonMap], ...inside] : inside;
}

/** Returns every `$ref` in a document. */
function references(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(references);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => (key === '$ref' ? [String(member)] : references(member)));
}

describe('the OpenAPI document', () => {
  test('puts the parameters of a GET into its query string', () => {
    const { parameters } = (
      document.paths as Record<string, { get: { parameters: { name: string; in: string; required: boolean }[] } }>
    )['/v1/show']?.get ?? {
      parameters: [],
    };
    expect(parameters.map(({ name, in: place, required }) => [name, place, required])).toEqual([
      ['object', 'query', true],
      ['session', 'query', false],
      ['at', 'query', false],
      ['valid_time', 'query', false],
      ['tx', 'query', false],
    ]);
  });

  test('closes every request object, except the messages and blocks of foreign wires, which say so', () => {
    const { schemas } = document.components as { schemas: JsonMap };
    const objects = Object.keys(REQUESTS).flatMap((name) => objectsIn(schemas[name], name));
    const open = objects.filter(([, { additionalProperties }]) => additionalProperties !== false);
    expect(objects.length - open.length).toBeGreaterThan(10);
    const places = open.map(([place]) =>
      place.replace(/\/(properties|items|anyOf)(?=\/|$)/g, '').replace(/\/\d+/g, ''),
    );
    const message = ['', '/content', '/tool_calls', '/tool_calls/function', '/usage', '/usage/cache_miss'];
    const wires = ['Messages', 'Context'].flatMap((name) => message.map((member) => `${name}/messages${member}`));
    const amplifier = ['AmplifierList', 'AmplifierMessages'].flatMap((name) =>
      message.slice(0, 4).map((member) => `${name}/messages/message${member}`),
    );
    expect([...new Set(places)].sort()).toEqual(
      [...wires, ...amplifier, 'ToolCalls/calls/content', 'ToolCalls/calls/shown'].sort(),
    );
  });

  test('has one example of each request, which its schema accepts [issue: public examples]', () => {
    const bodies = Object.values<object>(ALL_OPERATIONS).flatMap((operation) => {
      const { path, request, example } = operation as Pick<Operation, 'path' | 'request' | 'example'>;
      return request === undefined ? [] : [{ id: path, schema: REQUESTS[request], example }];
    });
    const questions = Object.entries(ALL_QUESTIONS).map(([id, { parameters, example }]) => ({
      id,
      schema: parameters,
      example,
    }));
    for (const { id, schema, example } of [...bodies, ...questions])
      expect([id, schema?.safeParse(example).error?.message]).toEqual([id, undefined]);
    expect(bodies.length + questions.length).toBeGreaterThan(40);
    expect(JSON.stringify(document)).toContain('"example":{"verb":"pin","ids":["src/cart.ts"]}');
  });

  test('makes a body optional if it has no required member', () => {
    const paths = document.paths as Record<string, Record<string, { requestBody?: { required: boolean } }>>;
    const required = (path: string) => paths[path]?.post?.requestBody?.required;
    const of = (name: string) => required(`/v1/sessions/{id}/${name}`);
    expect([required('/v1/sessions'), of('close'), of('context'), of('messages'), of('pin')]).toEqual([
      false,
      false,
      false,
      true,
      true,
    ]);
  });

  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(document as Record<string, unknown>);
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
    expect(validator.version).toBe('3.1');
  });

  test('fails validation with a mistake in it', async () => {
    const broken = { ...document, paths: { '/x': { get: { responses: { banana: {} } } } } };
    expect((await new Validator().validate(broken)).valid).toBe(false);
  });

  test('lists every operation with its schemas, and every reference resolves', () => {
    const paths = document.paths as Record<string, Record<string, { operationId: string }>>;
    const listed = Object.values(paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    );
    expect(listed.sort()).toEqual(
      [...Object.keys(ALL_OPERATIONS), ...Object.keys(ALL_QUESTIONS), 'followSession'].sort(),
    );
    const { schemas } = document.components as { schemas: JsonMap };
    expect(Object.keys(schemas).sort()).toEqual(
      [...new Set([REQUESTS, ALL_ANSWERS, ALL_REVIEW_ANSWERS].flatMap((table) => Object.keys(table)))].sort(),
    );
    const names = references(document).map((ref) => /^#\/components\/schemas\/(\w+)$/.exec(ref)?.[1]);
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => name === undefined || !Object.hasOwn(schemas, name))).toEqual([]);
  });
});
