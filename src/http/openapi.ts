import { z } from 'zod';
import { defined } from '../values/defined.js';
import { type ApiOperation, OPERATIONS } from './api-operations.js';
import { ANSWERS, REQUESTS } from './api-schemas.js';
import { REVIEW_OPERATIONS, type ReviewOperation } from './review-operations.js';
import { REVIEW_ANSWERS, REVIEW_PARAMETERS } from './review-schemas.js';

type JsonMap = { readonly [key: string]: unknown };

const ref = (name: string): JsonMap => ({ $ref: `#/components/schemas/${name}` });
const json = (name: string, type = 'application/json'): JsonMap => ({ [type]: { schema: ref(name) } });

/** The JSON Schema of one body, by itself: neither dialect nor id of its own. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): JsonMap {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { target: 'draft-2020-12', io });
  return rest;
}

function schemas(): JsonMap {
  const requests = Object.entries(REQUESTS).map(([name, schema]) => [name, schemaOf(schema, 'input')]);
  const answers = Object.entries(ANSWERS).map(([name, schema]) => [name, schemaOf(schema, 'output')]);
  const past = Object.entries(REVIEW_ANSWERS).map(([name, schema]) => [name, schemaOf(schema, 'output')]);
  return Object.fromEntries([...requests, ...answers, ...past]);
}

function operation(id: string, { path, summary, request, answer, statuses }: ApiOperation): JsonMap {
  const successes = statuses.map((status) => [status, { description: summary, content: json(answer) }]);
  const problem = { description: 'A problem', content: json('Problem', 'application/problem+json') };
  return {
    operationId: id,
    summary,
    ...(path.includes('{id}')
      ? { parameters: [{ name: 'id', in: 'path', required: true, description: 'The session', schema: { type: 'string' } }] }
      : {}),
    ...(request === undefined ? {} : { requestBody: { required: !REQUESTS[request].safeParse({}).success, content: json(request) } }),
    responses: { ...Object.fromEntries(successes), default: problem },
  };
}

/** One parameter for each member of a schema of parameters. */
function queryParameters(schema: z.ZodType): readonly JsonMap[] {
  const { properties = {}, required = [] } = schemaOf(schema, 'input') as { properties?: Record<string, JsonMap>; required?: string[] };
  return Object.entries(properties).map(([name, { description, ...given }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...defined({ description }),
    schema: given,
  }));
}

function question(id: string, { summary, parameters, answer }: ReviewOperation): JsonMap {
  const content = answer === null ? { 'text/plain': { schema: { type: 'string' } } } : json(answer);
  return {
    operationId: id,
    summary,
    parameters: queryParameters(REVIEW_PARAMETERS[parameters]),
    responses: {
      200: { description: summary, content },
      default: { description: 'A problem', content: json('Problem', 'application/problem+json') },
    },
  };
}

/** The OpenAPI 3.1 document of the interface, made from the schemas that requests and answers are checked with. */
export function openApiDocument(version: string): JsonMap {
  const paths: Record<string, Record<string, JsonMap>> = {};
  for (const [id, given] of Object.entries(OPERATIONS)) {
    paths[given.path] = { ...paths[given.path], [given.method.toLowerCase()]: operation(id, given) };
  }
  for (const [id, given] of Object.entries(REVIEW_OPERATIONS)) paths[given.path] = { ...paths[given.path], get: question(id, given) };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Palimpsest',
      version,
      description:
        'A bitemporal context service for LLM agents: what a harness reports and asks, and what its reviewers ask about the past.',
    },
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    security: [{ bearer: [] }],
    paths,
    components: { schemas: schemas(), securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
  };
}
