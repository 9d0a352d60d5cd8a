import type { IncomingHttpHeaders } from 'node:http';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { Agent, request as ask } from 'node:https';
import type { AddressInfo } from 'node:net';
import { parseUntrustedKubeconfig } from '../../../operator/kube/kubeconfig.ts';
import { createCA, issue } from '../../../operator/pki/certificates.ts';
import type { Endpoint } from './model.ts';

/** Headers of one connection, which HTTP/2 does not have. */
const OF_A_CONNECTION = /^(connection|keep-alive|proxy-connection|transfer-encoding|upgrade|host|:.*)$/;

const passed = (headers: IncomingHttpHeaders, without: readonly string[] = []): IncomingHttpHeaders =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) => !OF_A_CONNECTION.test(name) && !without.includes(name)),
  );

export interface ApiServerProxy extends Endpoint {
  close(): Promise<void>;
}

/**
 * What a cloud has in front of the API servers that it runs: an address and a certificate of its own, and a say in who is who.
 * A token that `isAdministrator` knows becomes the administrator of the kubeconfig; all others are for the API server to judge.
 */
export async function startApiServerProxy(
  kubeconfig: string,
  isAdministrator: (token: string) => boolean,
): Promise<ApiServerProxy> {
  const { server, ca, cert, key } = parseUntrustedKubeconfig(kubeconfig);
  const tls = { ca, keepAlive: true };
  const [anybody, administrator] = [new Agent(tls), new Agent({ ...tls, cert, key })];
  const authority = await createCA({ commonName: 'a managed cluster', days: 2 });
  const own = await issue(authority, {
    commonName: 'kubernetes',
    ipAddresses: ['127.0.0.1'],
    usages: ['server'],
    days: 2,
  });

  const forward = (request: Http2ServerRequest, response: Http2ServerResponse) => {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    const isOurs = token !== undefined && isAdministrator(token);
    const upstream = ask(
      new URL(request.url, server),
      {
        agent: isOurs ? administrator : anybody,
        method: request.method,
        headers: passed(request.headers, isOurs ? ['authorization'] : []),
      },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, passed(answer.headers));
        answer.pipe(response);
      },
    );
    upstream.on('error', () => {
      if (!response.headersSent) response.writeHead(502);
      response.end();
    });
    response.on('close', () => upstream.destroy());
    request.pipe(upstream);
  };
  const front = createSecureServer({ cert: own.cert, key: own.key, allowHTTP1: true }, forward);
  const sessions = new Set<{ destroy(): void }>();
  front.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
  });
  front.on('secureConnection', (socket) => {
    sessions.add(socket);
    socket.once('close', () => sessions.delete(socket));
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `https://127.0.0.1:${(front.address() as AddressInfo).port}`,
    certificateAuthority: authority.cert,
    async close() {
      for (const one of sessions) one.destroy();
      await new Promise((resolve) => front.close(resolve));
      anybody.destroy();
      administrator.destroy();
    },
  };
}
