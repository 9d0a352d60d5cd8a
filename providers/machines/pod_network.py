#!/usr/bin/env python3
# Keeps a route to the pods of each other node, through a VXLAN between the machines: no multicast, which clouds lack. The
# MAC address of a node's end is made of its address, so that nodes need to tell each other nothing.
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.request

DEVICE = 'pods'
CREDENTIALS = '/var/lib/kubelet/pki/kubelet-client-current.pem'
# A watch ends by itself before that long a silence: whoever is silent for longer is gone, behind whatever proxy that said nothing.
WATCH_S, SILENCE_S = 50, 60
env = os.environ


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def batch(command, lines):
    if lines:
        subprocess.run([command, '-force', '-batch', '-'], input='\n'.join(lines) + '\n', text=True, check=False)


def mac(address):
    return '02:00:' + ':'.join(f'{int(part):02x}' for part in address.split('.'))


def rule(table, chain, *match):
    if subprocess.run(['iptables', '-w', '-t', table, '-C', chain, *match], capture_output=True).returncode:
        run('iptables', '-w', '-t', table, '-I', chain, *match)


def prepare():
    if subprocess.run(['ip', 'link', 'show', DEVICE], capture_output=True).returncode:
        run('ip', 'link', 'add', DEVICE, 'address', mac(env['NODE_IP']), 'mtu', env['MTU'], 'type', 'vxlan',
            'id', '1', 'dstport', '4789', 'local', env['NODE_IP'], 'dev', env['LINK'], 'nolearning')
    run('ip', 'link', 'set', DEVICE, 'up')
    pods = env['POD_CIDR']
    rule('nat', 'POSTROUTING', '-s', pods, '!', '-d', pods, '-j', 'MASQUERADE')
    # Cloud metadata has what this machine was made with, and at Azure the agent's settings: that is not for pods.
    for server, ports in (('169.254.169.254', '80'), ('168.63.129.16', '80,32526')):
        rule('filter', 'FORWARD', '-s', pods, '-d', server, '-p', 'tcp', '-m', 'multiport', '--dports', ports, '-j', 'DROP')
    # Other chains may drop what they do not know.
    rule('filter', 'FORWARD', '-d', pods, '-j', 'ACCEPT')


def address_of(node):
    kinds = {one['type']: one['address'] for one in node.get('status', {}).get('addresses', [])}
    return kinds.get('InternalIP')


def follow(nodes):
    wanted = {}
    for node in nodes.values():
        cidr, address = node['spec'].get('podCIDR'), address_of(node)
        if not cidr or not address:
            continue
        if node['metadata']['name'] == env['NODE_NAME']:
            # Our own traffic to pods elsewhere needs a source to which answers come back through here.
            run('ip', 'addr', 'replace', f'{cidr.split("/")[0]}/32', 'dev', DEVICE)
        else:
            wanted[cidr] = address
    there = {one['dst'] for one in json.loads(run('ip', '-j', 'route', 'show', 'dev', DEVICE) or '[]')}
    lines, macs = [f'route del {cidr} dev {DEVICE}' for cidr in there - wanted.keys() if '/' in cidr], []
    for cidr, address in wanted.items():
        gate = cidr.split('/')[0]
        lines.append(f'neigh replace {gate} lladdr {mac(address)} dev {DEVICE} nud permanent')
        lines.append(f'route replace {cidr} via {gate} dev {DEVICE} onlink')
        macs.append(f'fdb replace {mac(address)} dev {DEVICE} dst {address} self permanent')
    batch('bridge', macs)
    batch('ip', lines)


def get(query=''):
    # The kubelet renews its certificate.
    context = ssl.create_default_context(cafile='/etc/coppice/ca.crt')
    context.load_cert_chain(CREDENTIALS)
    return urllib.request.urlopen(env['API_SERVER'] + '/api/v1/nodes' + query, context=context, timeout=SILENCE_S)


def watch():
    with get() as answer:
        listed = json.load(answer)
    nodes = {node['metadata']['name']: node for node in listed['items']}
    version = listed['metadata']['resourceVersion']
    while True:
        # Each time, for what others took away.
        follow(nodes)
        with get(f'?watch=1&allowWatchBookmarks=1&timeoutSeconds={WATCH_S}&resourceVersion={version}') as answer:
            for line in answer:
                event = json.loads(line)
                node = event['object']
                if event['type'] == 'ERROR':
                    return
                version = node['metadata']['resourceVersion']
                if event['type'] == 'BOOKMARK':
                    continue
                if event['type'] == 'DELETED':
                    nodes.pop(node['metadata']['name'], None)
                else:
                    before = nodes.get(node['metadata']['name'])
                    nodes[node['metadata']['name']] = node
                    if before and before['spec'].get('podCIDR') == node['spec'].get('podCIDR') \
                            and address_of(before) == address_of(node):
                        continue
                follow(nodes)
        time.sleep(1)


if __name__ == '__main__':
    prepare()
    while True:
        try:
            watch()
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            print(f'pod network: {error}', file=sys.stderr, flush=True)
        time.sleep(2)
