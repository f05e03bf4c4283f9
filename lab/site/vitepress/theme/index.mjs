// VitePress's own theme, with a link to the list of versions. The list is outside of
// the folder of this version, so the router must not follow it: hence the target.
import { h } from 'vue'
import DefaultTheme from 'vitepress/theme'
import site from '../site.json'
import './style.css'

const versions = () =>
  h('a', { class: 'versions', href: site.versions, target: '_self', title: 'All versions of the documents' }, site.version)

export default {
  extends: DefaultTheme,
  Layout: () =>
    h(DefaultTheme.Layout, null, { 'nav-bar-content-after': versions, 'nav-screen-content-after': versions }),
}
