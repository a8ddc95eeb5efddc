-- Defines the user commands, handles the server's commands, and sets up clients when they attach.
if vim.g.loaded_rlm_lsp or vim.fn.has('nvim-0.10') == 0 then
  return
end
vim.g.loaded_rlm_lsp = true

vim.api.nvim_create_user_command('RlmLspToggle', function(command)
  require('rlm_lsp').toggle(command.bang)
end, { bang = true, desc = 'Hide or show the hints of rlm-lsp in this buffer, with ! in all buffers' })

vim.api.nvim_create_user_command('RlmLspLog', function()
  require('rlm_lsp').show_log()
end, { desc = 'Show the latest lines of the log of rlm-lsp' })

vim.lsp.commands['rlm-lsp.explain'] = function(...)
  require('rlm_lsp').explain(...)
end
-- Both commands return a text to show.
vim.lsp.commands['rlm-lsp.compareGpus'] = function(...)
  require('rlm_lsp').explain(...)
end
vim.lsp.commands['rlm-lsp.copyJson'] = function(...)
  require('rlm_lsp').copy_json(...)
end
vim.lsp.commands['rlm-lsp.measureCommand'] = function(...)
  require('rlm_lsp').copy_measure_command(...)
end

local group = vim.api.nvim_create_augroup('rlm_lsp', {})
vim.api.nvim_create_autocmd('LspAttach', {
  group = group,
  callback = function(event)
    require('rlm_lsp').attached(vim.lsp.get_client_by_id(event.data.client_id), event.buf)
  end,
})

vim.api.nvim_create_autocmd('FileType', {
  group = group,
  callback = function(event)
    require('rlm_lsp').opened(event.buf)
  end,
})

-- On Linux, Neovim does not notify servers when files change.
vim.api.nvim_create_autocmd('BufWritePost', {
  group = group,
  pattern = { 'rlm-lsp.toml', 'pyproject.toml' },
  callback = function()
    require('rlm_lsp').settings_changed()
  end,
})
