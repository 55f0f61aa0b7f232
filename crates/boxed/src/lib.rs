//! The attribute of what is awaited across crates (decision 0065).

use proc_macro::TokenStream;
use quote::quote;
use syn::parse::Nothing;
use syn::visit_mut::{VisitMut, visit_type_impl_trait_mut, visit_type_reference_mut};
use syn::{
    FnArg, GenericParam, ItemFn, Lifetime, ParenthesizedGenericArguments, Receiver, ReceiverKind, ReturnType,
    Signature, TypeFnPtr, TypeImplTrait, TypeReference, parse_macro_input, parse_quote,
};

/// The future of this async function is boxed here, so that its code is compiled in this crate alone. Otherwise each crate that awaits it
/// compiles it, and all that it awaits, once more.
///
/// What is borrowed is borrowed for one lifetime. With one for each, and bounds between them, the compiler proves anew for each
/// function that all below it may go to another thread: that was a fifth of the engine's compilation.
#[proc_macro_attribute]
pub fn boxed(arguments: TokenStream, item: TokenStream) -> TokenStream {
    parse_macro_input!(arguments as Nothing);
    let mut function = parse_macro_input!(item as ItemFn);
    match expand(&mut function) {
        Ok(()) => quote!(#function).into(),
        Err(error) => error.into_compile_error().into(),
    }
}

fn expand(function: &mut ItemFn) -> syn::Result<()> {
    let signature = &mut function.sig;
    if signature.asyncness.take().is_none() {
        return Err(syn::Error::new_spanned(signature.fn_token, "only an `async fn` has a future to box"));
    }
    borrow_for_one_lifetime(signature);
    let answer = match &signature.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, answer) => quote!(#answer),
    };
    signature.output = parse_quote! {
        -> ::std::pin::Pin<::std::boxed::Box<dyn ::std::future::Future<Output = #answer> + ::std::marker::Send + 'boxed>>
    };
    let block = &function.block;
    function.block = parse_quote!({ ::std::boxed::Box::pin(async move #block) });
    Ok(())
}

/// Gives a name to the lifetime of whatever the arguments and the answer borrow, and lets what is generic live as long.
fn borrow_for_one_lifetime(signature: &mut Signature) {
    for argument in &mut signature.inputs {
        match argument {
            FnArg::Receiver(receiver) => Borrowed.visit_receiver_mut(receiver),
            FnArg::Typed(typed) => Borrowed.visit_type_mut(&mut typed.ty),
        }
    }
    if let ReturnType::Type(_, answer) = &mut signature.output {
        Borrowed.visit_type_mut(answer);
    }
    for parameter in &mut signature.generics.params {
        match parameter {
            GenericParam::Type(parameter) => parameter.bounds.push(parse_quote!('boxed)),
            GenericParam::Lifetime(parameter) => parameter.bounds.push(parse_quote!('boxed)),
            GenericParam::Const(_) => {}
        }
    }
    signature.generics.params.insert(0, parse_quote!('boxed));
}

struct Borrowed;

impl VisitMut for Borrowed {
    fn visit_receiver_mut(&mut self, receiver: &mut Receiver) {
        match &mut receiver.kind {
            ReceiverKind::Reference(_, lifetime, _) => *lifetime = Some(parse_quote!('boxed)),
            ReceiverKind::Typed(_, of) => self.visit_type_mut(of),
            _ => {}
        }
    }

    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        reference.lifetime.get_or_insert_with(|| parse_quote!('boxed));
        visit_type_reference_mut(self, reference);
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" {
            *lifetime = parse_quote!('boxed);
        }
    }

    /// What a function or a closure is called with is borrowed for the call.
    fn visit_type_fn_ptr_mut(&mut self, _: &mut TypeFnPtr) {}
    fn visit_parenthesized_generic_arguments_mut(&mut self, _: &mut ParenthesizedGenericArguments) {}

    fn visit_type_impl_trait_mut(&mut self, of: &mut TypeImplTrait) {
        visit_type_impl_trait_mut(self, of);
        of.bounds.push(parse_quote!('boxed));
    }
}
