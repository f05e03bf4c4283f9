// The configuration of VitePress. What depends on the documents is in site.json, which
// the Go command writes.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

const site = JSON.parse(readFileSync(new URL('./site.json', import.meta.url), 'utf8'))

// GitHub's anchors. The number of a repeated heading is added by VitePress.
const slugify = (title) => title.trim().toLowerCase().replace(/[^\p{L}\p{N}_\- ]/gu, '').replaceAll(' ', '-')

// Vue would evaluate braces in text.
const withoutBraces = (html) => html.replaceAll('{{', '&#123;&#123;')

// The few inline scripts are allowed by their digests. The highlighter and Vue write
// style attributes.
const policy = (html) => {
  const scripts = [...html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([\s\S]*?)<\/script>/g)]
  const digests = scripts.map(([, code]) => `'sha256-${createHash('sha256').update(code).digest('base64')}'`)
  return [
    "default-src 'none'",
    ["script-src 'self'", ...new Set(digests)].join(' '),
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
}

export default {
  lang: 'en-US',
  title: 'Tenure',
  description: site.description,
  base: site.base,
  outDir: site.out,
  metaChunk: true,
  head: [['link', { rel: 'icon', href: 'data:,' }]], // without it, browsers ask for one
  markdown: {
    anchor: { slugify },
    attrs: { disable: true },
    config: (md) => {
      md.linkify.set({ fuzzyLink: false })
      for (const rule of ['text', 'code_inline']) {
        const render = md.renderer.rules[rule]
        md.renderer.rules[rule] = (...args) => withoutBraces(render(...args))
      }
    },
  },
  transformHtml: (html) =>
    html.replace('<meta charset="utf-8">', `$&\n    <meta http-equiv="Content-Security-Policy" content="${policy(html)}">`),
  themeConfig: {
    nav: [
      { text: 'Documents', link: '/contents' },
      { text: 'Repository', link: site.repository },
    ],
    sidebar: site.menu,
    outline: [2, 3],
    search: { provider: 'local' },
    externalLinkIcon: true,
  },
}
