import { randomBytes } from 'node:crypto';
import grpc from '@grpc/grpc-js';
import plugin from '@pulumi/pulumi/proto/plugin_pb.js';
import services from '@pulumi/pulumi/proto/provider_grpc_pb.js';
import messages from '@pulumi/pulumi/proto/provider_pb.js';
import status from '@pulumi/pulumi/proto/status_pb.js';
import any from 'google-protobuf/google/protobuf/any_pb.js';
import empty from 'google-protobuf/google/protobuf/empty_pb.js';
import type { PropertyChange } from './check-and-diff.ts';
import { CloudError } from './gate.ts';
import type { CloudModel, Properties, Settings } from './model.ts';
import { type Operations, PartialFailure } from './operations.ts';
import { marked, plain, toStruct, UNKNOWN } from './property-values.ts';
import { createProvider } from './provider.ts';
import type { Store } from './store.ts';

/** What the plugin is made of. */
export interface PluginParts {
  model: CloudModel;
  store: Store;
  operations: Operations;
  version: string;
  configure: (settings: Settings) => void;
  /** Whatever waits shall wait no longer. */
  cancel: () => void;
}

const KINDS = messages.PropertyDiff.Kind;
const kindOf = ({ kind, replaces }: PropertyChange) =>
  ({
    add: replaces ? KINDS.ADD_REPLACE : KINDS.ADD,
    delete: replaces ? KINDS.DELETE_REPLACE : KINDS.DELETE,
    update: replaces ? KINDS.UPDATE_REPLACE : KINDS.UPDATE,
  })[kind];

/** The provider's configuration; what is not a string comes as JSON in one. */
const configurationOf = (properties: Properties): Properties =>
  Object.fromEntries(
    Object.entries(properties).map(([key, value]) => {
      const isJSON = typeof value === 'string' && /^[[{]/.test(value) && key !== 'credentials';
      return [key, isJSON ? JSON.parse(value) : value];
    }),
  );

const typeOfURN = (urn: string): string => urn.split('::')[2]!.split('$').at(-1)!;
const nameOfURN = (urn: string): string => urn.split('::').slice(3).join('::');

/** Pulumi's own way to say that something was made, but not well: what the engine finds in the details goes into its state. */
function failure(error: unknown, secrets: (error: PartialFailure) => readonly string[]): Partial<grpc.StatusObject> {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof PartialFailure)) {
    const expected = error instanceof CloudError;
    return {
      code: grpc.status.UNKNOWN,
      details: expected ? message : `the fake cloud broke: ${(error as Error).stack}`,
    };
  }
  const detail = new messages.ErrorResourceInitFailed();
  detail.setId(error.answer.id);
  detail.setProperties(toStruct(error.answer.outputs, secrets(error)));
  detail.setInputs(toStruct(error.answer.inputs));
  detail.setReasonsList([message]);
  const packed = new any.Any();
  packed.pack(detail.serializeBinary(), 'pulumirpc.ErrorResourceInitFailed');
  const full = new status.Status();
  full.setCode(grpc.status.UNKNOWN);
  full.setMessage(message);
  full.addDetails(packed);
  const metadata = new grpc.Metadata();
  metadata.add('grpc-status-details-bin', Buffer.from(full.serializeBinary()));
  return { code: grpc.status.UNKNOWN, details: message, metadata };
}

type Call = grpc.ServerUnaryCall<any, any>;

/** The gRPC service pulumirpc.ResourceProvider. */
export function createServer({ model, store, operations, version, configure, cancel }: PluginParts): grpc.Server {
  const accountOf = (settings: Settings) => model.accountOf(settings, store.accounts());
  const provider = createProvider(model, operations);
  const secretsOf = (token: string) => provider.secrets(token);

  /** Handlers that return (or reject with) what they have to say. */
  const answers: Record<string, (request: any) => unknown> = {
    getPluginInfo() {
      const info = new plugin.PluginInfo();
      info.setVersion(version);
      return info;
    },
    getSchema() {
      const response = new messages.GetSchemaResponse();
      response.setSchema(JSON.stringify({ name: model.name, version }));
      return response;
    },
    checkConfig(request) {
      const response = new messages.CheckResponse();
      response.setInputs(request.getNews());
      const configuration = configurationOf(plain(request.getNews()));
      if (String(configuration.skipCredentialsValidation) === 'true') return response;
      if (Object.values(configuration).includes(UNKNOWN)) return response;
      const settings = model.settings(configuration, process.env);
      const reason = model.checkConfiguration(settings, accountOf(settings));
      if (reason === undefined) return response;
      const wrong = new messages.CheckFailure();
      wrong.setReason(reason);
      response.setFailuresList([wrong]);
      return response;
    },
    diffConfig: () => new messages.DiffResponse(),
    configure(request) {
      const variables = Object.fromEntries(
        (request.getVariablesMap().toArray() as [string, string][]).map(([key, value]) => [
          key.replace(/^.*:/, ''),
          value,
        ]),
      );
      configure(model.settings(configurationOf({ ...variables, ...plain(request.getArgs()) }), process.env));
      const response = new messages.ConfigureResponse();
      response.setSupportspreview(true);
      return response;
    },
    async invoke(request) {
      const response = new messages.InvokeResponse();
      response.setReturn(toStruct(await provider.invoke(request.getTok(), plain(request.getArgs()))));
      return response;
    },
    check(request) {
      const seed = Buffer.from(request.getRandomseed_asU8());
      const inputs = provider.check(
        typeOfURN(request.getUrn()),
        nameOfURN(request.getUrn()),
        marked(request.getNews()),
        marked(request.getOlds()),
        (seed.length > 0 ? seed : randomBytes(16)).toString('hex'),
      );
      const response = new messages.CheckResponse();
      response.setInputs(toStruct(inputs));
      return response;
    },
    diff(request) {
      const before = request.hasOldInputs() ? request.getOldInputs() : request.getOlds();
      const { changes, deleteBeforeReplace } = provider.diff(
        typeOfURN(request.getUrn()),
        plain(before),
        plain(request.getNews()),
      );
      const top = (path: string) => /^[^.[]+/.exec(path)?.[0] ?? path;
      const response = new messages.DiffResponse();
      const { DIFF_SOME, DIFF_NONE } = messages.DiffResponse.DiffChanges;
      response.setChanges(changes.length > 0 ? DIFF_SOME : DIFF_NONE);
      response.setDiffsList([...new Set(changes.map(({ path }) => top(path)))]);
      response.setReplacesList([...new Set(changes.filter((one) => one.replaces).map(({ path }) => top(path)))]);
      response.setDeletebeforereplace(deleteBeforeReplace);
      response.setHasdetaileddiff(true);
      for (const change of changes) {
        const detail = new messages.PropertyDiff();
        detail.setKind(kindOf(change));
        detail.setInputdiff(true);
        response.getDetaileddiffMap().set(change.path, detail);
      }
      return response;
    },
    async create(request) {
      const token = typeOfURN(request.getUrn());
      const inputs = plain(request.getProperties());
      const response = new messages.CreateResponse();
      if (request.getPreview()) {
        response.setProperties(toStruct(provider.planCreate(token, inputs), secretsOf(token)));
        return response;
      }
      const { id, outputs } = await provider.create(token, nameOfURN(request.getUrn()), inputs);
      response.setId(id);
      response.setProperties(toStruct(outputs, secretsOf(token)));
      return response;
    },
    async read(request) {
      const token = typeOfURN(request.getUrn());
      const response = new messages.ReadResponse();
      const [known, inputs] = [plain(request.getProperties()), plain(request.getInputs())];
      const found = await provider.read(token, request.getId(), known, inputs);
      if (!found) return response;
      response.setId(found.id);
      response.setProperties(toStruct(found.outputs, secretsOf(token)));
      response.setInputs(toStruct(found.inputs));
      return response;
    },
    async update(request) {
      const token = typeOfURN(request.getUrn());
      const [olds, news] = [plain(request.getOlds()), plain(request.getNews())];
      const response = new messages.UpdateResponse();
      const outputs = request.getPreview()
        ? provider.planUpdate(olds, news)
        : (await provider.update(token, request.getId(), olds, news)).outputs;
      response.setProperties(toStruct(outputs, secretsOf(token)));
      return response;
    },
    async delete(request) {
      const token = typeOfURN(request.getUrn());
      await provider.delete(token, request.getId(), plain(request.getProperties()));
      return new empty.Empty();
    },
    cancel() {
      cancel();
      return new empty.Empty();
    },
    attach: () => new empty.Empty(),
    getMapping: () => new messages.GetMappingResponse(),
    getMappings: () => new messages.GetMappingsResponse(),
  };

  const handlers = Object.fromEntries(
    Object.entries(answers).map(([name, handle]) => [
      name,
      (call: Call, callback: grpc.sendUnaryData<unknown>): void => {
        Promise.resolve()
          .then(() => handle(call.request))
          .then(
            (response) => callback(null, response),
            (error: unknown) => callback(failure(error, () => secretsOf(typeOfURN(call.request.getUrn())))),
          );
      },
    ]),
  );
  const server = new grpc.Server({ 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 });
  server.addService(services.ResourceProviderService, handlers as grpc.UntypedServiceImplementation);
  return server;
}
