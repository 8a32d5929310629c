/** The theme of the site: that of VitePress, with programs that run. */

import DefaultTheme from 'vitepress/theme'
import { onMounted } from 'vue'
import './programs.css'

export default {
  extends: DefaultTheme,
  // Elements of programs change what is in them, so they begin when the page is as Vue expects it.
  setup: () => onMounted(() => import('./program.js')),
}
