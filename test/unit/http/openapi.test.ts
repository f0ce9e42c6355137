import { describe, expect, test } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import { OPERATIONS } from '../../../src/http/api-operations.js';
import { ANSWERS, REQUESTS } from '../../../src/http/api-schemas.js';
import { openApiDocument } from '../../../src/http/openapi.js';
import { REVIEW_OPERATIONS } from '../../../src/http/review-operations.js';
import { REVIEW_ANSWERS } from '../../../src/http/review-schemas.js';

type JsonMap = { readonly [key: string]: unknown };
const document = JSON.parse(JSON.stringify(openApiDocument('1.2.3'))) as JsonMap;

/** Every `$ref` in a document. */
function references(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(references);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => (key === '$ref' ? [String(member)] : references(member)));
}

describe('the OpenAPI document', () => {
  test('a question has its parameters in the query of its address', () => {
    const { parameters } = (document.paths as Record<string, { get: { parameters: { name: string; in: string; required: boolean }[] } }>)[
      '/v1/show'
    ]?.get ?? {
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

  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(document as Record<string, unknown>);
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
    expect(validator.version).toBe('3.1');
  });

  test('a document with a mistake in it is found out', async () => {
    const broken = { ...document, paths: { '/x': { get: { responses: { banana: {} } } } } };
    expect((await new Validator().validate(broken)).valid).toBe(false);
  });

  test('lists every operation with its schemas, and every reference leads somewhere', () => {
    const paths = document.paths as Record<string, Record<string, { operationId: string }>>;
    const listed = Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId));
    expect(listed.sort()).toEqual([...Object.keys(OPERATIONS), ...Object.keys(REVIEW_OPERATIONS)].sort());
    const { schemas } = document.components as { schemas: JsonMap };
    expect(Object.keys(schemas).sort()).toEqual([...Object.keys(REQUESTS), ...Object.keys(ANSWERS), ...Object.keys(REVIEW_ANSWERS)].sort());
    const names = references(document).map((ref) => /^#\/components\/schemas\/(\w+)$/.exec(ref)?.[1]);
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => name === undefined || !Object.hasOwn(schemas, name))).toEqual([]);
  });
});
