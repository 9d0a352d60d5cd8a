import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import grpc from '@grpc/grpc-js';
import services from '@pulumi/pulumi/proto/provider_grpc_pb.js';
import messages from '@pulumi/pulumi/proto/provider_pb.js';
import status from '@pulumi/pulumi/proto/status_pb.js';
import empty from 'google-protobuf/google/protobuf/empty_pb.js';
import type { FakeCloud } from './index.ts';
import type { CloudName, Properties } from './model.ts';
import { marked, plain, toStruct } from './property-values.ts';

/** What a plugin said no to. */
export class PluginError extends Error {
  override readonly name = 'PluginError';
  /** What was made all the same, if the plugin said so. */
  readonly partial: { id: string; outputs: Properties } | undefined;

  constructor(message: string, partial?: { id: string; outputs: Properties }) {
    super(message);
    this.partial = partial;
  }
}

/** A provider plugin, driven as Pulumi's engine does; tokens are Pulumi's. Requests reject with PluginErrors. */
export interface Plugin {
  pid: number;
  /** Reasons why the configuration cannot be. */
  checkConfiguration(configuration: Properties): Promise<string[]>;
  configure(configuration: Properties): Promise<void>;
  check(token: string, name: string, inputs: Properties, before?: Properties): Promise<Properties>;
  diff(
    token: string,
    before: Properties,
    after: Properties,
  ): Promise<{ changed: string[]; replaces: string[]; deleteBeforeReplace: boolean; details: string[] }>;
  create(
    token: string,
    name: string,
    inputs: Properties,
    options?: { preview?: boolean },
  ): Promise<{ id: string; outputs: Properties; marked: Properties }>;
  /** Undefined when there is none. */
  read(token: string, id: string): Promise<{ id: string; outputs: Properties; inputs: Properties } | undefined>;
  update(
    token: string,
    id: string,
    before: Properties,
    after: Properties,
    options?: { preview?: boolean },
  ): Promise<Properties>;
  delete(token: string, id: string, properties?: Properties): Promise<void>;
  invoke(token: string, args: Properties): Promise<Properties>;
  cancel(): Promise<void>;
  /** Settles when the process has ended. */
  ended: Promise<unknown>;
  close(): Promise<void>;
}

const urn = (token: string, name: string): string => `urn:pulumi:test::coppice::${token}::${name}`;

function errorOf(error: grpc.ServiceError): PluginError {
  const [packed] = error.metadata?.get('grpc-status-details-bin') ?? [];
  if (!packed) return new PluginError(error.details || error.message);
  const [detail] = status.Status.deserializeBinary(Buffer.from(packed)).getDetailsList();
  const failed = messages.ErrorResourceInitFailed.deserializeBinary(detail!.getValue_asU8());
  return new PluginError(error.details, { id: failed.getId(), outputs: plain(failed.getProperties()) });
}

async function portOf(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout! })) return line;
  throw new Error('the plugin ended before it said its port');
}

/** Starts a plugin of the cloud. The account's credentials have to be in the configuration or the environment. */
export async function startPlugin(
  cloud: FakeCloud,
  name: CloudName,
  options: { configuration?: Properties; environment?: Record<string, string> } = {},
): Promise<Plugin> {
  const child = spawn(join(cloud.pluginFolders[name], `pulumi-resource-${name}`), ['127.0.0.1:1'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, ...options.environment },
  });
  const ended = once(child, 'exit');
  const client = new services.ResourceProviderClient(
    `127.0.0.1:${await portOf(child)}`,
    grpc.credentials.createInsecure(),
  );
  const ask = <T>(method: string, request: unknown): Promise<T> =>
    new Promise((resolve, reject) => {
      (client as any)[method](request, (error: grpc.ServiceError | null, response: T) =>
        error ? reject(errorOf(error)) : resolve(response),
      );
    });
  const about = <T extends { setUrn(value: string): void }>(request: T, token: string, logicalName = 'it'): T => {
    request.setUrn(urn(token, logicalName));
    return request;
  };

  const plugin: Plugin = {
    pid: child.pid!,
    async checkConfiguration(configuration) {
      const request = about(new messages.CheckRequest(), `pulumi:providers:${name}`);
      request.setNews(toStruct(configuration));
      const response = await ask<InstanceType<typeof messages.CheckResponse>>('checkConfig', request);
      return response.getFailuresList().map((failure) => failure.getReason());
    },
    async configure(configuration) {
      const request = new messages.ConfigureRequest();
      request.setArgs(toStruct(configuration));
      await ask('configure', request);
    },
    async check(token, logicalName, inputs, before = {}) {
      const request = about(new messages.CheckRequest(), token, logicalName);
      request.setOlds(toStruct(before));
      request.setNews(toStruct(inputs));
      const response = await ask<InstanceType<typeof messages.CheckResponse>>('check', request);
      return plain(response.getInputs());
    },
    async diff(token, before, after) {
      const request = about(new messages.DiffRequest(), token);
      request.setOldInputs(toStruct(before));
      request.setNews(toStruct(after));
      const response = await ask<InstanceType<typeof messages.DiffResponse>>('diff', request);
      return {
        changed: response.getDiffsList(),
        replaces: response.getReplacesList(),
        deleteBeforeReplace: response.getDeletebeforereplace(),
        details: [...response.getDetaileddiffMap().keys()] as string[],
      };
    },
    async create(token, logicalName, inputs, { preview = false } = {}) {
      const request = about(new messages.CreateRequest(), token, logicalName);
      request.setProperties(toStruct(inputs));
      request.setPreview(preview);
      const response = await ask<InstanceType<typeof messages.CreateResponse>>('create', request);
      const properties = response.getProperties();
      return { id: response.getId(), outputs: plain(properties), marked: marked(properties) };
    },
    async read(token, id) {
      const request = about(new messages.ReadRequest(), token);
      request.setId(id);
      const response = await ask<InstanceType<typeof messages.ReadResponse>>('read', request);
      if (response.getId() === '') return undefined;
      return { id: response.getId(), outputs: plain(response.getProperties()), inputs: plain(response.getInputs()) };
    },
    async update(token, id, before, after, { preview = false } = {}) {
      const request = about(new messages.UpdateRequest(), token);
      request.setId(id);
      request.setOlds(toStruct(before));
      request.setNews(toStruct(after));
      request.setPreview(preview);
      const response = await ask<InstanceType<typeof messages.UpdateResponse>>('update', request);
      return plain(response.getProperties());
    },
    async delete(token, id, properties = {}) {
      const request = about(new messages.DeleteRequest(), token);
      request.setId(id);
      request.setProperties(toStruct(properties));
      await ask('delete', request);
    },
    async invoke(token, args) {
      const request = new messages.InvokeRequest();
      request.setTok(token);
      request.setArgs(toStruct(args));
      const response = await ask<InstanceType<typeof messages.InvokeResponse>>('invoke', request);
      return plain(response.getReturn());
    },
    async cancel() {
      await ask('cancel', new empty.Empty());
    },
    ended,
    async close() {
      client.close();
      child.kill('SIGKILL');
      await ended;
    },
  };
  await plugin.configure(options.configuration ?? {});
  return plugin;
}
