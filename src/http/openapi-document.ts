import * as z from 'zod';
import { defined } from '../values/defined.js';
import { ANSWERS, REQUESTS } from './api-schemas.js';
import { type ApiOperation, EVENTS_PATH, type ListedOperation, OPERATIONS } from './operations.js';
import { REVIEW_OPERATIONS, type ReviewOperationId } from './review-operations.js';
import { EVENTS_PARAMETERS, REVIEW_PARAMETERS } from './review-parameters.js';
import { REVIEW_ANSWERS } from './review-schemas.js';

type JsonMap = { readonly [key: string]: unknown };

const ref = (name: string): JsonMap => ({ $ref: `#/components/schemas/${name}` });
const json = (name: string, type = 'application/json'): JsonMap => ({ [type]: { schema: ref(name) } });

/** Returns the JSON Schema of one body, without `$schema` and `$id`. */
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

/** Builds the document's part for an operation; `more` is its request part. */
function operation(id: string, { summary, answer, media, statuses = [200] }: ListedOperation, more: JsonMap): JsonMap {
  const plain =
    media === undefined
      ? { 'text/plain': { schema: { type: 'string' } } }
      : { [media]: { schema: { type: 'string', format: 'binary' } } };
  const content = answer === null ? plain : json(answer);
  const successes = Object.fromEntries(statuses.map((status) => [status, { description: summary, content }]));
  const problem = { description: 'A problem', content: json('Problem', 'application/problem+json') };
  return { operationId: id, summary, ...more, responses: { ...successes, default: problem } };
}

function requestOf({ path, request }: ApiOperation): JsonMap {
  return {
    ...(path.includes('{id}')
      ? {
          parameters: [
            { name: 'id', in: 'path', required: true, description: 'The session', schema: { type: 'string' } },
          ],
        }
      : {}),
    ...(request === undefined
      ? {}
      : { requestBody: { required: !REQUESTS[request].safeParse({}).success, content: json(request) } }),
  };
}

/**
 * Builds one parameter for each member of a schema. Parameters are in the query, except those in
 * the path.
 */
function parametersOf(path: string, schema: z.ZodType): readonly JsonMap[] {
  const { properties = {}, required = [] } = schemaOf(schema, 'input') as {
    properties?: Record<string, JsonMap>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...given }]) => ({
    name,
    in: path.includes(`{${name}}`) ? 'path' : 'query',
    required: required.includes(name),
    ...defined({ description }),
    schema: given,
  }));
}

function eventsOperation(): JsonMap {
  const summary =
    'Changes of a session after a transaction, as server-sent events: `change`, with the transaction as id and a ' +
    'StripChange as data';
  const parameters = [
    { name: 'id', in: 'path', required: true, description: 'The session', schema: { type: 'string' } },
    ...parametersOf(EVENTS_PATH, EVENTS_PARAMETERS),
    {
      name: 'Last-Event-ID',
      in: 'header',
      required: false,
      description: 'As `after`, and takes precedence over it',
      schema: { type: 'string' },
    },
  ];
  const problem = { description: 'A problem', content: json('Problem', 'application/problem+json') };
  const responses = {
    200: { description: summary, content: { 'text/event-stream': { schema: { type: 'string' } } } },
    default: problem,
  };
  return { operationId: 'followSession', summary, parameters, responses };
}

/** Builds the OpenAPI 3.1 document from the schemas that validate requests and answers. */
export function openApiDocument(version: string): JsonMap {
  const paths: Record<string, Record<string, JsonMap>> = {};
  for (const [id, given] of Object.entries(OPERATIONS)) {
    paths[given.path] = { ...paths[given.path], [given.method.toLowerCase()]: operation(id, given, requestOf(given)) };
  }
  for (const [id, given] of Object.entries(REVIEW_OPERATIONS)) {
    const parameters = parametersOf(given.path, REVIEW_PARAMETERS[id as ReviewOperationId]);
    paths[given.path] = { ...paths[given.path], get: operation(id, given, { parameters }) };
  }
  paths[EVENTS_PATH] = { get: eventsOperation() };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Palimpsest',
      version,
      description:
        'A bitemporal context service for LLM agents: reports and requests of harnesses, and questions of ' +
        'reviewers about ' +
        'the past.',
    },
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    security: [{ bearer: [] }],
    paths,
    components: { schemas: schemas(), securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
  };
}
